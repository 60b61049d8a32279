-- constants: texts that several scripts need. A script includes this file before all others. The
-- file defines no function, so it costs the server nearly nothing.

-- While the server keeps a free lock for the waiter whose turn it is, the lock's value is the
-- waiter's token, then this text, then the waiter's holder info. Attempts count from 1, so no
-- holder's value has this text behind the token.
local TURN = ' v1 try=0 '

-- How many ms the server keeps the last fence after a grant or a renewal: 7 days.
local FENCE_LIFE = '604800000'
