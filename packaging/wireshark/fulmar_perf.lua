-- What the two ends of `fulmar perf` say to each other, and their messages: crates/net/src/perf/{record,message}.rs.
-- A record is a length (16 bit) and postcard: numbers as little-endian groups of seven bits, enums and options by number.

local TYPES = {
    [0] = "HELLO", "ACCEPT", "REFUSE", "PROBE", "ECHO", "BEGIN", "GO", "INTERVAL", "END", "RESULT",
}
local DIRECTIONS = { [0] = "up", "down" }
local VERSION = 2
local STREAMS_MAX = 128
local RECORD_BYTES_MAX = 2048
local HEAD_BYTES = 20
local MESSAGE_BYTES_MAX = 65000
local WIRE = { "source", "repair", "retransmission", "control" }
-- The octets of a message of each test that was introduced.
local lengths = {}

local proto, data_proto = nil, nil
local f, d = {}, {}

local function declare(shared)
    local field
    proto, field = shared.declare("fulmar.perf", "Fulmar perf", f)
    field("length", "uint16", "Length")
    field("type", "uint32", "Type", base.DEC, TYPES)
    field("version", "uint8", "Version")
    field("test", "uint32", "Test", base.HEX)
    field("mode", "uint8", "Mode", base.DEC, shared.modes)
    field("direction", "uint32", "Direction", base.DEC, DIRECTIONS)
    field("message_bytes", "uint32", "Octets of a message")
    field("rate_bps", "uint64", "Rate (bit/s)")
    field("link_bps", "uint64", "Link (bit/s)")
    field("time", "double", "For (s)")
    field("limit_bytes", "uint64", "For (octets)")
    field("interval", "double", "Interval (s)")
    field("fec_words", "uint16", "FEC words")
    field("streams", "uint32", "Streams")
    field("stream", "uint8", "Stream, from 0")
    field("token", "uint64", "Token", base.HEX)
    field("text", "string", "Text")
    for _, name in ipairs { "sent", "came", "answered" } do
        field(name, "uint64", name:gsub("^%l", string.upper) .. " (ns)")
    end
    field("ahead", "int64", "Server's clock ahead (ns)")
    field("from", "double", "From (s)")
    field("until", "double", "Until (s)")
    field("messages", "uint64", "Messages")
    field("bytes", "uint64", "Octets")
    for _, name in ipairs(WIRE) do
        field("wire_" .. name .. "_bytes", "uint64", "Octets on the wire: " .. name)
    end
    for tries = 1, 3 do
        field("recovered_arq_" .. tries, "uint64", "TPDUs after retransmission " .. tries .. (tries == 3 and " or more" or ""))
    end
    field("stalls", "uint64", "Stalls")
    field("reordered", "uint64", "Reordered")
    field("elapsed", "double", "Elapsed (s)")
    for _, name in ipairs { "accepted", "wire_lost", "wire_damaged", "recovered_fec_words", "recovered_fec_block", "residual" } do
        field(name .. "_tpdus", "uint64", "TPDUs: " .. name:gsub("_", " "))
    end
    for _, name in ipairs { "count", "early", "min", "p50", "p90", "p99", "p999", "max" } do
        field("delay_" .. name, "uint64", "Delay: " .. name .. ((name == "count" or name == "early") and "" or " (ns)"))
    end
    field("delay_mean", "double", "Delay: mean (ns)")
    proto.fields = f
    data_proto = Proto("fulmar.perf_data", "Fulmar perf, a message")
    d.test = ProtoField.uint32("fulmar.perf_data.test", "Test", base.HEX)
    d.sequence = ProtoField.uint64("fulmar.perf_data.sequence", "Message")
    d.sent = ProtoField.uint64("fulmar.perf_data.sent", "Sent (ns)")
    d.filling = ProtoField.bytes("fulmar.perf_data.filling", "Filling")
    data_proto.fields = d
end

-- A number in groups of seven bits: its value and range.
local function varint(cursor)
    local from, value = cursor.at, UInt64.new(0, 0)
    for group = 0, 9 do
        local range = cursor:range(1, "a number")
        if not range then
            return nil
        end
        local octet = range:uint()
        value = value + UInt64.new(octet % 128, 0):lshift(7 * group)
        if octet < 128 then
            return value, cursor.tvb:range(from, cursor.at - from)
        end
    end
    cursor:fail("malformed", "a number of more than ten octets")
end

-- Adds a number; gives it as UInt64 or, if `small`, as a number.
local function number(cursor, name, small)
    local value, range = varint(cursor)
    if not value then
        return nil
    end
    if small and value:higher() > 0 then
        cursor:fail("malformed", name .. " is too large")
        return nil
    end
    value = small and value:lower() or value
    cursor.tree:add(f[name], range, value)
    return value
end

local function numbers(cursor, ...)
    for _, name in ipairs { ... } do
        number(cursor, name)
    end
end

local function duration(cursor, name)
    local from = cursor.at
    local seconds, nanos = varint(cursor), varint(cursor)
    if nanos then
        cursor.tree:add(f[name], cursor.tvb:range(from, cursor.at - from), seconds:tonumber() + nanos:tonumber() / 1e9)
    end
end

local function is_there(cursor)
    local range = cursor:range(1, "an option")
    if range and range:uint() > 1 then
        cursor:fail("malformed", "an option that is neither there nor not")
    end
    return range and range:uint() == 1
end

local function hello(cursor)
    local version = cursor:number(f.version, 1)
    if version and version ~= VERSION then
        cursor:fail("version", "version " .. version .. " of the test")
        return ""
    end
    local test = number(cursor, "test", true)
    cursor:number(f.mode, 1)
    number(cursor, "direction", true)
    local bytes = number(cursor, "message_bytes", true)
    if is_there(cursor) then
        number(cursor, "rate_bps")
    end
    number(cursor, "link_bps")
    local limit = varint(cursor)
    if limit and limit:tonumber() == 0 then
        duration(cursor, "time")
    elseif limit and limit:tonumber() == 1 then
        number(cursor, "limit_bytes")
    elseif limit then
        cursor:fail("malformed", "a limit without a meaning")
    end
    if is_there(cursor) then
        duration(cursor, "interval")
    end
    number(cursor, "fec_words", true)
    local streams = cursor:number(f.streams, 1)
    if not cursor.failed and bytes >= HEAD_BYTES and bytes <= MESSAGE_BYTES_MAX then
        lengths[test] = bytes
    end
    return bytes and string.format(" test=%08x streams=%d messages of %d", test, streams or 0, bytes) or ""
end

local BODIES = {
    HELLO = hello,
    ACCEPT = function(cursor) numbers(cursor, "token") end,
    REFUSE = function(cursor)
        local length = varint(cursor)
        local text = length and cursor:text(f.text, math.min(length:tonumber(), RECORD_BYTES_MAX))
        return text and " " .. text
    end,
    PROBE = function(cursor) numbers(cursor, "token", "sent") end,
    ECHO = function(cursor) numbers(cursor, "sent", "came", "answered") end,
    BEGIN = function(cursor)
        number(cursor, "token")
        local value, range = varint(cursor)
        if value then
            local half = value:rshift(1)
            local ahead = Int64.new(half:lower(), half:higher())
            if value:lower() % 2 == 1 then
                ahead = Int64.new(-1) - ahead
            end
            cursor.tree:add(f.ahead, range, ahead)
            return " ahead=" .. tostring(ahead)
        end
    end,
    GO = function() end,
    INTERVAL = function(cursor)
        duration(cursor, "from")
        duration(cursor, "until")
        local streams = number(cursor, "streams", true)
        if streams and streams > STREAMS_MAX then
            cursor:fail("malformed", streams .. " streams")
            return
        end
        for _ = 1, streams or 0 do
            number(cursor, "messages")
        end
    end,
    END = function(cursor)
        cursor:number(f.stream, 1)
        numbers(cursor, "messages", "bytes")
        for _, name in ipairs(WIRE) do
            number(cursor, "wire_" .. name .. "_bytes")
        end
        numbers(cursor, "recovered_arq_1", "recovered_arq_2", "recovered_arq_3", "stalls")
    end,
    RESULT = function(cursor)
        -- Without a stream it is of all together.
        if is_there(cursor) then
            cursor:number(f.stream, 1)
        end
        numbers(cursor, "messages", "bytes", "reordered")
        duration(cursor, "elapsed")
        numbers(cursor, "accepted_tpdus", "wire_lost_tpdus", "wire_damaged_tpdus", "recovered_fec_words_tpdus",
            "recovered_fec_block_tpdus", "residual_tpdus")
        if is_there(cursor) then
            numbers(cursor, "delay_count", "delay_early", "delay_min")
            local range = cursor:range(8, "a mean")
            if range then
                cursor.tree:add_le(f.delay_mean, range)
            end
            numbers(cursor, "delay_p50", "delay_p90", "delay_p99", "delay_p999", "delay_max")
        end
    end,
}

local perf = {}

function perf.register(shared)
    declare(shared)
    function proto.init()
        lengths = {}
    end
    -- How long the record is that `octets` begin (streams.lua).
    function shared.perf_length(octets)
        local high, low = octets:byte(1, 2)
        local length = low and high * 256 + low
        return length and length <= RECORD_BYTES_MAX and 2 + length or (low and false or nil)
    end
    -- The same for messages, of a test whose introduction was seen.
    function shared.perf_data_length(octets)
        local a, b, c, e = octets:byte(1, 4)
        return e and (lengths[((a * 256 + b) * 256 + c) * 256 + e] or false) or nil
    end
    -- One record.
    function shared.perf_record(tvb, tree)
        local item = tree:add(proto, tvb:range())
        local cursor = shared.Cursor.new(tvb, item, shared.experts)
        local length = cursor:number(f.length, 2)
        if length and cursor:left() ~= length then
            cursor:fail(cursor:left() < length and "truncated" or "malformed",
                string.format("%d octets where its length says %d", cursor:left(), length))
        end
        local kind = number(cursor, "type", true)
        local text = "no record"
        if kind and TYPES[kind] then
            text = TYPES[kind] .. (BODIES[TYPES[kind]](cursor) or "")
            if not cursor.failed and cursor:left() > 0 then
                cursor:fail("malformed", string.format("%d octets more than %s has", cursor:left(), TYPES[kind]))
            end
        elseif kind then
            cursor:fail("unknown", "a record of unknown type")
        end
        item:append_text(", " .. text)
        return cursor.failed and text .. " [" .. cursor.failed .. "]" or text
    end
    -- One message.
    function shared.perf_message(tvb, tree)
        local cursor = shared.Cursor.new(tvb, tree:add(data_proto, tvb:range()), shared.experts)
        cursor:number(d.test, 4)
        local sequence = cursor:number64(d.sequence)
        cursor:number64(d.sent)
        cursor:rest(d.filling)
        return string.format("message %s len=%d", tostring(sequence), tvb:len())
    end
    shared.read(proto, function(_, tvb, pinfo, tree)
        pinfo.cols.protocol = "Perf"
        shared.info(pinfo, shared.perf_record(tvb, tree))
    end)
    shared.read(data_proto, function(_, tvb, pinfo, tree)
        pinfo.cols.protocol = "Perf"
        shared.info(pinfo, shared.perf_message(tvb, tree))
    end)
end

return perf
