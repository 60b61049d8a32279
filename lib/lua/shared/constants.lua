-- constants: texts and times that several scripts need. The file defines no function, so it costs
-- the server nearly nothing.

-- A waiter has its turn while a free lock is reserved for it. The lock's value is then the waiter's
-- token, this text and the waiter's holder info. Attempts count from 1, so no holder's value has
-- this text after the token.
local TURN = ' v1 try=0 '

-- How many ms the server keeps the last fence after a grant or a renewal: 7 days.
local FENCE_LIFE = '604800000'

-- How many ms the server keeps a queue after a request of any of its waiters: twice LIFE_MS of
-- shared/queue.lua.
local QUEUE_MS = 40000
