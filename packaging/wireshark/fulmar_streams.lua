-- Cuts the octet streams of AeroTP's connections into records, whichever TPDUs they were cut into.
--
-- A record is shown with the TPDU that completed it. TPDUs that were captured early wait for those before them; one that
-- never comes ends what can be read of its direction. What waits has bounds: of
-- TPDUs, and of a record's length. Records that were shown are kept, for Wireshark asks again in any order.

local Streams = {}
Streams.__index = Streams

local WAITING_MAX = 4096
-- A capture that begins with a number up to this is taken to have missed the first ones by reordering.
local FIRST_MAX = 64

-- `length_of(octets)`: how long the record is that `octets` begin, nil if they do not say yet, false if they are none.
function Streams.new(length_of)
    return setmetatable({ length_of = length_of, directions = {}, shown = {} }, Streams)
end

-- Forgets everything: another capture is read.
function Streams:reset()
    self.directions, self.shown = {}, {}
end

local function start(seq, asyn)
    local known = asyn or seq <= FIRST_MAX
    return { next = asyn and seq or 0, waiting = {}, held = 0, pieces = {}, length = 0, lost = not known }
end

-- Takes one body in order; gives the records that it completes. A record is { octets } or, wholly in this body, { octets, at }.
local function consume(self, direction, body, own, found)
    local buffered = table.concat(direction.pieces) .. body
    local before = direction.length
    local at = 0
    while at < #buffered do
        local length = self.length_of(buffered:sub(at + 1, at + 16))
        if length == false then
            direction.lost = true
            found.broken = own and math.max(at - before, 0) or 0
            break
        end
        if not length or at + length > #buffered then
            break
        end
        local inside = own and at >= before
        found[#found + 1] = { octets = buffered:sub(at + 1, at + length), at = inside and at - before or nil }
        at = at + length
    end
    direction.pieces = { buffered:sub(at + 1) }
    direction.length = #direction.pieces[1]
end

-- The number whose low 24 bits are `seq` that is nearest to `expected`.
local function nearest(expected, seq)
    return (expected + (seq - expected + 8388608) % 16777216 - 8388608) % 4294967296
end

local function take(self, key, seq, body, asyn, is_cut)
    local direction = self.directions[key]
    seq = is_cut and nearest(direction and direction.next or 0, seq) or seq
    if not direction or (asyn and direction.first_body and body ~= direction.first_body) then
        direction = start(seq, asyn)
        self.directions[key] = direction
    end
    local found = {}
    local ahead = (seq - direction.next) % 4294967296
    if direction.lost or ahead >= 2147483648 then
        found.lost = direction.lost
        return found
    end
    if ahead > 0 then
        if not direction.waiting[seq] then
            direction.waiting[seq], direction.held = body, direction.held + 1
            direction.lost = direction.held > WAITING_MAX
        end
        return found
    end
    direction.first_body = direction.first_body or body
    local own = true
    while body and not direction.lost do
        consume(self, direction, body, own, found)
        direction.next = (direction.next + 1) % 4294967296
        body, own = direction.waiting[direction.next], false
        if body then
            direction.waiting[direction.next], direction.held = nil, direction.held - 1
        end
    end
    found.partial = direction.length
    return found
end

-- The records that the TPDU with this number and body completed, as a list; `lost` is set in it if the stream cannot be followed
-- here, `broken` to where octets are no record, `partial` to how many octets of an unfinished record are kept. Of a number that
-- `is_cut` the low 24 bits are given.
function Streams:records(pinfo, key, seq, body, asyn, is_cut)
    local place = pinfo.number .. " " .. key .. " " .. seq
    if not self.shown[place] then
        self.shown[place] = take(self, key, seq, body, asyn, is_cut)
    end
    return self.shown[place]
end

return Streams
