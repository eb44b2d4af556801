-- Reads fields front to back, and never past the end: what is missing is said in the tree, once.

local Cursor = {}
Cursor.__index = Cursor

-- Over `tvb`, with items under `tree`. `stop`: where the fields end, if before the end of `tvb`.
function Cursor.new(tvb, tree, experts, stop)
    return setmetatable({ tvb = tvb, tree = tree, experts = experts, at = 0, stop = math.min(stop or tvb:len(), tvb:len()) }, Cursor)
end

function Cursor:left()
    return self.stop - self.at
end

-- Notes why the octets are not what they should be. The first reason counts.
function Cursor:fail(kind, text)
    if not self.failed then
        self.failed = text
        self.tree:add_proto_expert_info(self.experts[kind], text)
    end
end

-- The next `length` octets as a range, or nil and a note.
function Cursor:range(length, what)
    if self.failed then
        return nil
    end
    if self:left() < length then
        self:fail("truncated", string.format("%s needs %d octets, %d are left", what or "a field", length, self:left()))
        return nil
    end
    local range = self.tvb:range(self.at, length)
    self.at = self.at + length
    return range
end

-- Adds `field` of `length` octets; gives its item and range, or nothing when they are not there.
function Cursor:add(field, length, what)
    local range = self:range(length, what)
    if range then
        return self.tree:add(field, range), range
    end
end

-- The same for a number of at most four octets: gives the number.
function Cursor:number(field, length)
    local _, range = self:add(field, length)
    return range and range:uint()
end

-- The same for a number of eight octets.
function Cursor:number64(field)
    local _, range = self:add(field, 8)
    return range and range:uint64()
end

-- The next variable-length integer (RFC 9000, section 16); `what` names it in a note.
function Cursor:varint(what)
    local first = self:range(1, what)
    if not first then
        return nil
    end
    local value, further = first:uint() % 64, 2 ^ math.floor(first:uint() / 64) - 1
    local rest = self:range(further, what)
    for at = 0, rest and further - 1 or -1 do
        value = value * 256 + rest:range(at, 1):uint()
    end
    return rest and value
end

-- The same for `length` octets of UTF-8: gives the text, fit to be shown.
function Cursor:text(field, length)
    local range = self:range(length, "a text")
    if not range then
        return nil
    end
    if length == 0 then
        self.tree:add(field, range, "")
        return ""
    end
    self.tree:add_packet_field(field, range, ENC_UTF_8 + ENC_STRING)
    local text = range:raw():gsub("%c", "?")
    local rest = text:gsub("[\194-\223][\128-\191]", ""):gsub("[\224-\239][\128-\191][\128-\191]", "")
        :gsub("[\240-\244][\128-\191][\128-\191][\128-\191]", "")
    return rest:find("[\128-\255]") and text:gsub("[\128-\255]", "?") or text
end

-- Adds all that is left under `field`, if anything; gives its range.
function Cursor:rest(field)
    if self:left() > 0 then
        local _, range = self:add(field, self:left())
        return range
    end
end

-- Octets from `from` up to `to` as a string.
function Cursor:raw(from, to)
    if to <= from then
        return ""
    end
    return self.tvb:raw(from, to - from)
end

-- What a check says: names for a field beside each check.
Cursor.STATUS = { [0] = "bad", [1] = "good", [2] = "unverified" }

-- Adds a check's field over `range`, its status beside it, and a note if it failed. `computed` is nil if nothing can be computed.
function Cursor:check(field, status, range, computed, expert)
    local sent = range:uint()
    local item = self.tree:add(field, range)
    local code = computed == nil and 2 or (computed == sent and 1 or 0)
    self.tree:add(status, range, code):set_generated()
    if code == 0 then
        local digits = range:len() * 2
        item:add_proto_expert_info(self.experts[expert],
            string.format("%s: computed 0x%0" .. digits .. "x", expert == "header_check" and "Header check failed"
                or "Payload check failed", computed))
    end
    return code ~= 0
end

return Cursor
