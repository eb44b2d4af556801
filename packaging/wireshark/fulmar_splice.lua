-- The records of the splice: docs/protocol/splice.md.

local TYPES = {
    [1] = "OPEN", [2] = "ACCEPTED", [3] = "REFUSED", [4] = "DATA", [5] = "END", [6] = "RESET", [7] = "DELIVERED",
    [8] = "MESSAGE", [9] = "FLOW", [10] = "FINISHED", [11] = "STOP", [12] = "ASK", [13] = "GONE",
    [128] = "GOAL",
}
local OPTIONAL = 128
local HOSTS = { [1] = "name", [2] = "tunnel", [3] = "behind gateways", [4] = "IPv4", [6] = "IPv6" }
local HEARERS = { [0] = "this start", [1] = "an earlier start", [2] = "not known", [3] = "answered" }
local REFUSED = {
    "refused", "unreachable", "timeout", "not_allowed", "name_unknown", "too_many", "forgotten", "invalid",
    "not_kept",
}
local RESET = {
    "reset", "timeout", "shutdown", "protocol", "credit", "idle", "peer_lost", "custody_lost",
}

local proto = nil
local f = {}

local function declare(shared)
    local field
    proto, field = shared.declare("fulmar.splice", "Fulmar splice", f)
    field("type", "uint8", "Type", base.DEC, TYPES)
    field("length", "uint16", "Length of the body")
    field("flow", "bytes", "Flow")
    field("attempt", "uint64", "Attempt")
    field("flags", "uint8", "Flags", base.HEX)
    for bit_at, name in ipairs { "datagrams", "resume", "again", "refresh", "farewell", "durable" } do
        field("flags." .. name, "bool", name:gsub("^%l", string.upper), 8, nil, 2 ^ (bit_at - 1))
    end
    field("flags.hearer", "uint8", "Who may have heard it", base.DEC, HEARERS, 0xC0)
    field("priority", "uint8", "Priority")
    field("class", "uint8", "Class")
    field("weight", "uint8", "Weight")
    field("fec_words", "uint16", "FEC words")
    field("block_k", "uint8", "Block: sources")
    field("block_repairs", "uint8", "Block: repairs")
    field("block_close_after", "uint32", "Block: close after (us)")
    field("deadline", "uint32", "Deadline (us)")
    field("window", "uint32", "Window (octets)")
    field("presumed", "uint32", "Presumed (octets)")
    field("received", "uint64", "Received (octets)")
    field("limit", "uint64", "Limit (octets)")
    field("kept_from", "uint64", "Kept from")
    field("host_type", "uint8", "Host type", base.DEC, HOSTS)
    field("port", "uint16", "Port")
    field("host.ipv4", "ipv4", "Host")
    field("host.ipv6", "ipv6", "Host")
    field("host.name", "string", "Host")
    field("passed", "uint8", "Gateways passed")
    field("left", "uint32", "Left of the deadline (us)")
    field("gateways", "uint8", "Gateways to come")
    field("gateway_length", "uint8", "Length of the name")
    field("gateway", "string", "Gateway")
    field("refused", "uint8", "Code", base.DEC, REFUSED)
    field("reset", "uint8", "Code", base.DEC, RESET)
    field("data", "bytes", "Octets of the stream")
    field("total", "uint64", "Total (octets)")
    field("offset", "uint64", "Offset")
    field("number", "uint32", "Message number")
    field("stamp", "uint32", "Stamp (us)")
    field("index", "uint8", "Part")
    field("last", "uint8", "Last part")
    field("message", "bytes", "Octets of the message")
    field("goal", "uint8", "Goal", base.HEX)
    field("goal.by_deadline", "bool", "Late messages are given up", 8, nil, 1)
    field("goal.any_order", "bool", "In any order", 8, nil, 2)
    field("goal.overhead", "uint8", "Overhead (%)")
    field("goal.residual", "uint32", "May be late (of a million)")
    field("goal.deadline", "uint32", "Deadline (us)")
    field("ignored", "bytes", "Body of a record that may be ignored")
    proto.fields = f
end

local function is_no_name(text)
    return #text < 1 or #text > 253 or text:find("[^%w%-_%.]")
end

local host

-- The host behind further gateways, whose names come first.
local function beyond(cursor)
    cursor:number(f.passed, 1)
    cursor:number(f.left, 4)
    local count = cursor:number(f.gateways, 1)
    local octets = 0
    for _ = 1, count or 0 do
        local length = cursor:number(f.gateway_length, 1)
        if not length then
            return "?"
        end
        local item, range = cursor:add(f.gateway, length)
        if not item then
            return "?"
        elseif is_no_name(range:raw()) then
            cursor:fail("malformed", "name of a gateway")
            return "?"
        end
        octets = octets + length
    end
    local end_at, end_length = host(cursor, true)
    if count and not cursor.failed and (count < 1 or count > 7 or octets + end_length > 253) then
        cursor:fail("malformed", string.format("%d gateways", count))
    end
    return end_at
end

function host(cursor, is_behind)
    local kind = cursor:number(f.host_type, 1)
    if kind == 3 and not is_behind then
        return beyond(cursor)
    elseif is_behind and kind == 2 then
        cursor:fail("malformed", "a tunnel behind gateways")
        return "?", 0
    end
    local port = cursor:number(f.port, 2)
    if not port then
        return "?", 0
    end
    local field, length = f["host.ipv4"], 4
    if kind == 6 then
        field, length = f["host.ipv6"], 16
    elseif kind == 1 or kind == 2 then
        field, length = f["host.name"], cursor:left()
        local name = cursor:raw(cursor.at, cursor.stop)
        if length < 1 or length > 253 or name:find("[^%w%-_%.]") then
            cursor:fail("malformed", "host name")
            return "?", 0
        elseif kind == 2 and port > 1023 then
            cursor:fail("malformed", "bucket")
            return "?", 0
        end
    elseif kind ~= 4 then
        cursor:fail("malformed", string.format("host type %d", kind))
        return "?", 0
    end
    local item, range = cursor:add(field, length)
    if not item then
        return "?", 0
    end
    local is_name = kind == 1 or kind == 2
    local name_length = is_name and length or 0
    local text = is_name and range:raw() or kind == 4 and tostring(range:ipv4()) or "[" .. tostring(range:ipv6()) .. "]"
    return text .. ":" .. port, name_length
end

local function open(cursor)
    local _, flow = cursor:add(f.flow, 16)
    cursor:number64(f.attempt)
    local item, flags = cursor:add(f.flags, 1)
    if not item then
        return ""
    end
    for _, name in ipairs { "datagrams", "resume", "again", "refresh", "farewell", "durable", "hearer" } do
        item:add(f["flags." .. name], flags)
    end
    if flags:uint() >= 64 and math.floor(flags:uint() / 4) % 2 == 0 then
        cursor:fail("malformed", "who may have heard what was not asked before")
    end
    cursor:number(f.priority, 1)
    cursor:number(f.class, 1)
    cursor:number(f.weight, 1)
    local words = cursor:number(f.fec_words, 2)
    local k, repairs, close_after = cursor:number(f.block_k, 1), cursor:number(f.block_repairs, 1),
        cursor:number(f.block_close_after, 4)
    if close_after and words > 256 then
        cursor:fail("malformed", "more than 256 words of parity")
    elseif close_after and ((k == 0 and (repairs > 0 or close_after > 0)) or k + repairs > 256) then
        cursor:fail("malformed", "no block is like this")
    end
    for _, name in ipairs { "deadline", "window", "presumed" } do
        cursor:number(f[name], 4)
    end
    for _, name in ipairs { "received", "limit", "kept_from" } do
        cursor:number64(f[name])
    end
    return string.format(" flow=%s to %s", flow:range(0, 4):bytes():tohex(true), (host(cursor)))
end

local function message(cursor)
    local number = cursor:number(f.number, 4)
    cursor:number(f.stamp, 4)
    local index, last = cursor:number(f.index, 1), cursor:number(f.last, 1)
    if not last then
        return ""
    end
    if index > last then
        cursor:fail("malformed", "a part behind the last")
    end
    cursor:rest(f.message)
    return string.format(" %d part %d/%d", number, index + 1, last + 1)
end

-- The flows that are asked about, each with its attempt, or that are gone.
local function questions(cursor, with_attempts)
    local count = 0
    while cursor:left() > 0 and not cursor.failed do
        cursor:add(f.flow, 16)
        if with_attempts then
            cursor:number64(f.attempt)
        end
        count = count + 1
    end
    if count > 1024 or (with_attempts and count == 0) then
        cursor:fail("malformed", string.format("%d flows", count))
    end
    return string.format(" %d flows", count)
end

-- The repair that a flow asks for.
local function goal(cursor)
    local item, flags = cursor:add(f.goal, 1)
    if not item then
        return ""
    end
    for _, name in ipairs { "by_deadline", "any_order" } do
        item:add(f["goal." .. name], flags)
    end
    if flags:uint() > 3 then
        cursor:rest(f.ignored)
        return " of a later version"
    end
    cursor:number(f["goal.overhead"], 1)
    cursor:number(f["goal.residual"], 4)
    local deadline = cursor:number(f["goal.deadline"], 4)
    return deadline and string.format(" deadline=%dus", deadline) or ""
end

-- What each type's body is; gives what the info column says of it.
local BODIES = {
    OPEN = open,
    ACCEPTED = function(cursor)
        cursor:number64(f.received)
        cursor:number64(f.limit)
        return " from " .. (host(cursor))
    end,
    REFUSED = function(cursor)
        local code = cursor:number(f.refused, 1)
        return code and " " .. (REFUSED[code] or code) or ""
    end,
    DATA = function(cursor)
        if cursor:left() == 0 then
            cursor:fail("malformed", "no octets")
        end
        local length = cursor:left()
        cursor:rest(f.data)
        return " len=" .. length
    end,
    END = function(cursor)
        return " total=" .. tostring(cursor:number64(f.total))
    end,
    RESET = function(cursor)
        local code = cursor:number(f.reset, 1)
        return code and " " .. (RESET[code] or code) or ""
    end,
    DELIVERED = function(cursor)
        return string.format(" offset=%s limit=%s", tostring(cursor:number64(f.offset)), tostring(cursor:number64(f.limit)))
    end,
    MESSAGE = message,
    FLOW = function(cursor)
        local _, flow = cursor:add(f.flow, 16)
        return flow and " " .. flow:range(0, 4):bytes():tohex(true) or ""
    end,
    GOAL = goal,
    FINISHED = function() return "" end,
    STOP = function() return "" end,
    ASK = function(cursor)
        return questions(cursor, true)
    end,
    GONE = function(cursor)
        return questions(cursor, false)
    end,
}

-- One record at the front of `tvb`; gives its length, or nil if it is cut off, and what it is in a few words.
local function record(shared, tvb, tree)
    local whole = shared.splice_length(tvb:raw(0, math.min(tvb:len(), 3)))
    local tree_item = tree:add(proto, tvb:range(0, math.min(whole or tvb:len(), tvb:len())))
    local cursor = shared.Cursor.new(tvb, tree_item, shared.experts, whole or nil)
    local kind = cursor:number(f.type, 1)
    local length = cursor:number(f.length, 2)
    if not length or cursor:left() < length then
        cursor:fail("truncated", "a record is cut off")
        return nil, "splice: cut off"
    end
    local name = TYPES[kind]
    local text
    if name then
        text = name .. BODIES[name](cursor)
        if not cursor.failed and cursor:left() > 0 then
            cursor:fail("malformed", string.format("%d octets more than %s has", cursor:left(), name))
        end
    else
        text = "type " .. kind
        cursor:rest(f.ignored)
        if kind < OPTIONAL then
            cursor:fail("unknown", "a record type that may not be ignored")
        end
    end
    tree_item:append_text(", " .. text)
    return 3 + length, cursor.failed and text .. " [" .. cursor.failed .. "]" or text
end

local splice = {}

function splice.register(shared)
    declare(shared)
    -- How long the record is that `octets` begin (streams.lua).
    function shared.splice_length(octets)
        local kind, high, low = octets:byte(1, 3)
        if not low then
            return nil
        end
        local is_none = (kind < OPTIONAL and not TYPES[kind]) or (TYPES[kind] == "DATA" and high + low == 0)
        return not is_none and 3 + high * 256 + low
    end
    -- One record; the octets of a stream that were put together.
    function shared.splice_record(tvb, tree)
        local _, text = record(shared, tvb, tree)
        return text
    end
    shared.read(proto, function(_, tvb, pinfo, tree)
        pinfo.cols.protocol = "Splice"
        local texts, at = {}, 0
        while at < tvb:len() do
            local length, text = record(shared, tvb:range(at):tvb(), tree)
            texts[#texts + 1] = text
            at = length and at + length or tvb:len()
        end
        shared.info(pinfo, table.concat(texts, ", "))
    end)
end

return splice
