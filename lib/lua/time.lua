-- time: tells the server's clock. Changes nothing. Called by rlock_examine, to compare clocks.
-- KEYS and ARGV: none
-- Returns {seconds, microseconds} since 1970, as text

return redis.call('TIME')
