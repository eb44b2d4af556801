-- The connections behind the names of AeroTP's short form (docs/protocol/aerotp.md, section 11.2), learnt from TPDUs that say their ports.

local OPENER_FIRST = 49152
-- Where a packet was captured: what passed by there is known by itself.
local interface_id = Field.new("frame.interface_id")

local Names = {}
Names.__index = Names

function Names.new()
    return setmetatable({ known = {}, found = {} }, Names)
end

-- Forgets everything: another capture is read.
function Names:reset()
    self.known, self.found = {}, {}
end

local function key(from, to, name, opened)
    return string.format("%s %s>%s %d %s", tostring(interface_id()), tostring(from), tostring(to), name, tostring(opened))
end

-- The name of a connection in words.
function Names.text(name)
    return string.format("%d+%d", OPENER_FIRST + math.floor(name / 4), name % 4)
end

-- Notes a TPDU's ports and mode. Either end may have opened the connection.
function Names:note(pinfo, source, destination, mode)
    local there = { source = source, destination = destination, mode = mode }
    local back = { source = destination, destination = source, mode = mode }
    for opener, listener in pairs { [source] = destination, [destination] = source } do
        if opener >= OPENER_FIRST then
            local name, is_source = (opener - OPENER_FIRST) * 4 + listener % 4, opener == source
            self.known[key(pinfo.src, pinfo.dst, name, is_source)] = there
            self.known[key(pinfo.dst, pinfo.src, name, not is_source)] = back
        end
    end
end

-- The ports and the mode of a TPDU whose sender `opened` the connection of this name or not; nil if they were not captured.
-- What was found for a packet stays: Wireshark asks again in any order.
function Names:find(pinfo, name, opened)
    local place = string.format("%d %d %s", pinfo.number, name, tostring(opened))
    self.found[place] = self.found[place] or self.known[key(pinfo.src, pinfo.dst, name, opened)]
    return self.found[place]
end

return Names
