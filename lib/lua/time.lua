-- time: what the server's clock says.
-- KEYS and ARGV: none
-- returns {seconds, microseconds} since 1970, as text

return redis.call('TIME')
