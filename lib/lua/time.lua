-- time: returns the server's time. Changes nothing. rlock_examine calls this script to compare the
-- server's clock with its own.
-- KEYS and ARGV: none
-- Returns {seconds, microseconds} since 1970, as text

return redis.call('TIME')
