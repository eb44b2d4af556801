-- What is inside a session's data datagram once it is opened: docs/protocol/session.md, section 5. In wire 1 it is one message, in
-- wire 2 frames, of which each message is one with the same type and the same fields.

local TYPES = {
    [0] = "TPDU", "heartbeat", "probe", "probe reply", "close", "fragment", "report", "padding", [0x10] = "path ack", [0x14] = "further parity",
    [0x16] = "damage report", [0x18] = "arrival map", [0x1A] = "meet", [0x1C] = "met",
    [0x1E] = "relayed",
    [0x20] = "MACK", [0x21] = "NACK", [0x22] = "unknown name", [0x30] = "repair", [0x31] = "repair",
    [0x32] = "window repair", [0x33] = "window repair",
}
for kind = 0x40, 0x7F do
    TYPES[kind] = kind >= 0x60 and "data in full" or kind % 2 == 0 and "data" or nil
end
-- The types from here on are AeroTP's, in the short form.
local SHORT_FIRST = 0x20
local FRAGMENTS_MAX = 64
local REPORT_VERSION = 1
local CLASS_BYTES = 25
-- The class of a row that has losses by cause.
local LOSSES_ROW, CAUSES = 255, 5

local proto = nil
local f = {}

local function declare(shared)
    local field
    proto, field = shared.declare("fulmar.inner", "Fulmar session message", f)
    field("type", "uint8", "Message type", base.DEC, TYPES)
    field("more", "bool", "Another frame follows")
    field("length", "uint32", "Length of the frame")
    field("tpdu", "bytes", "TPDU")
    field("number", "uint32", "Number")
    field("time", "uint32", "Time (us)")
    field("index", "uint8", "Index")
    field("count", "uint8", "Count")
    field("piece", "bytes", "Piece of a TPDU")
    field("padding", "bytes", "Padding")
    field("sent", "uint64", "Datagrams sent")
    field("heard", "uint64", "Datagrams of the other end, as it said")
    field("keys", "uint32", "Index of the keys")
    field("arrived", "uint64", "Datagrams of these that arrived")
    field("version", "uint8", "Version of the splice's report")
    field("recovered", "uint64", "TPDUs recovered by parity")
    field("residual", "uint64", "TPDUs given up")
    field("class", "uint8", "Class")
    field("expected", "uint64", "Messages expected")
    field("delivered", "uint64", "Messages delivered")
    field("octets", "uint64", "Octets delivered")
    field("losses_sent", "uint32", "Packets of streams whose fate the sender knows")
    field("losses_lost", "uint32", "Packets of these that were lost")
    field("losses_share", "uint8", "Share of a cause (of 255)")
    field("losses_low", "uint8", "Lower end of its interval")
    field("losses_high", "uint8", "Upper end of its interval")
    field("losses_reserved", "uint8", "Reserved")
    field("report", "bytes", "Report of another version")
    field("place", "uint8", "Place of the path")
    field("largest", "uint24", "Largest counter that arrived")
    field("hold", "uint16", "Time since then (16 us)")
    field("clock", "uint32", "Clock (us)")
    field("octets_arrived", "uint32", "Octets arrived, modulo 2^32")
    field("marks", "uint16", "Congestion marks")
    field("recent", "uint16", "Rate of wrong bits lately (2^(-n / 1024))")
    field("lasting", "uint16", "Lasting rate of wrong bits (2^(-n / 1024))")
    field("whole", "uint32", "Armoured datagrams that arrived whole, modulo 2^32")
    field("mended", "uint32", "Armoured datagrams that were mended, modulo 2^32")
    field("beyond_repair", "uint32", "Armoured datagrams beyond repair, modulo 2^32")
    field("symbols", "uint32", "Octets that parity put right, modulo 2^32")
    field("damaged", "uint24", "Counter of a datagram beyond repair")
    field("arrival_bits", "bytes", "Datagrams that arrived, from the largest counter down")
    field("further", "bytes", "Further parity for datagrams that came damaged")
    field("remote", "bytes", "Public key of the remote")
    field("meeting", "uint8", "Introduced (1), relayed (2), address told (4), there (8)")
    field("remote_number", "uint16", "The hub's number of the remote")
    field("address", "bytes", "Address of the remote")
    field("port", "uint16", "Port of the remote")
    field("direction", "uint8", "Direction", base.DEC, { [0] = "to the remote", "from the remote" })
    field("relayed", "bytes", "Datagram of the session between the two ends")
    proto.fields = f
end

local function fragment(cursor)
    local number = cursor:number(f.number, 4)
    local index, count = cursor:number(f.index, 1), cursor:number(f.count, 1)
    if not count then
        return ""
    end
    if count < 2 or count > FRAGMENTS_MAX or index >= count then
        cursor:fail("malformed", "no piece is like this")
    end
    local length = cursor:left()
    cursor:rest(f.piece)
    return string.format(" %d: %d/%d len=%d", number, index + 1, count, length)
end

local function losses(cursor)
    cursor:number(f.losses_sent, 4)
    cursor:number(f.losses_lost, 4)
    for _ = 1, CAUSES do
        cursor:number(f.losses_share, 1)
        cursor:number(f.losses_low, 1)
        cursor:number(f.losses_high, 1)
    end
    cursor:number(f.losses_reserved, 1)
end

-- Datagrams of both directions, then what the splice says (docs/protocol/splice.md, section 10).
local function report(cursor)
    local sent = cursor:number64(f.sent)
    local heard, arrived = cursor:number64(f.heard), cursor:number64(f.arrived)
    if not arrived then
        return ""
    end
    local text = string.format(" sent=%s heard=%s arrived=%s", tostring(sent), tostring(heard), tostring(arrived))
    if cursor:left() == 0 then
        return text
    end
    if cursor:number(f.version, 1) ~= REPORT_VERSION then
        cursor:rest(f.report)
        return text
    end
    cursor:number64(f.recovered)
    cursor:number64(f.residual)
    while not cursor.failed and cursor:left() >= CLASS_BYTES do
        if cursor:number(f.class, 1) == LOSSES_ROW then
            losses(cursor)
        else
            cursor:number64(f.expected)
            cursor:number64(f.delivered)
            cursor:number64(f.octets)
        end
    end
    if not cursor.failed and cursor:left() > 0 then
        cursor:fail("malformed", "a class is cut off")
    end
    return text
end

-- What arrived of the other end's datagrams. What is behind the fields is for later versions.
local function path_ack(cursor)
    cursor:number(f.place, 1)
    local largest = cursor:number(f.largest, 3)
    cursor:number(f.hold, 2)
    cursor:number(f.clock, 4)
    local octets = cursor:number(f.octets_arrived, 4)
    if not cursor:number(f.marks, 2) then
        return ""
    end
    if cursor:left() > 0 then
        cursor:rest(f.padding)
    end
    return string.format(" largest=%d octets=%d", largest, octets)
end

-- What became of the other end's armoured datagrams, and those of them that are to be sent again.
local function damage_report(cursor)
    cursor:number(f.place, 1)
    local recent = cursor:number(f.recent, 2)
    cursor:number(f.lasting, 2)
    cursor:number(f.whole, 4)
    cursor:number(f.mended, 4)
    cursor:number(f.beyond_repair, 4)
    if not cursor:number(f.symbols, 4) then
        return ""
    end
    local claims = 0
    while not cursor.failed and cursor:left() >= 3 do
        cursor:number(f.damaged, 3)
        claims = claims + 1
    end
    if cursor:left() > 0 then
        cursor:rest(f.padding)
    end
    return string.format(" ber=2^-%.1f damaged=%d", recent / 1024, claims)
end

-- Parity for datagrams that came damaged: for each its counter 3, codewords 1, first step 1, steps 1, and as many octets as there are
-- codewords and steps.
local function further_parity(cursor)
    if cursor:number(f.place, 1) and cursor:left() > 0 then
        cursor:rest(f.further)
    end
    return ""
end

-- The datagrams that arrived: a bit for each counter, from the largest one down.
local function arrival_map(cursor)
    cursor:number(f.place, 1)
    cursor:number(f.keys, 4)
    local largest = cursor:number(f.largest, 3)
    if cursor:left() > 0 then
        cursor:rest(f.arrival_bits)
    end
    return string.format(" up to %d", largest or 0)
end

-- The wish to meet a remote, by its public key.
local function meet(cursor)
    cursor:add(f.remote, 32, "the public key")
    if not cursor.failed and cursor:left() > 0 then
        cursor:rest(f.padding)
    end
    return ""
end

-- The hub's word about a remote.
local function met(cursor)
    cursor:add(f.remote, 32, "the public key")
    local flags = cursor:number(f.meeting, 1)
    cursor:number(f.remote_number, 2)
    cursor:add(f.address, 16, "the address")
    local port = cursor:number(f.port, 2)
    if port and cursor:left() > 0 then
        cursor:rest(f.padding)
    end
    return flags and flags % 2 == 0 and " not introduced" or ""
end

-- A datagram that goes by a hub.
local function relayed(cursor)
    local direction = cursor:number(f.direction, 1)
    local number = cursor:number(f.remote_number, 2)
    if not number then
        return ""
    end
    if direction > 1 then
        cursor:fail("malformed", "no such direction")
        return ""
    end
    if cursor:left() > 0 then
        cursor:rest(f.relayed)
    end
    return string.format(" %s %d", direction == 0 and "to" or "from", number)
end

-- The fields of one frame behind its type; gives what the info column says, and a TPDU in the long form.
local function message(cursor, kind)
    local name, text = TYPES[kind], ""
    if not name then
        cursor:fail("unknown", "a message of unknown type")
    elseif name == "TPDU" then
        return name, cursor:rest(f.tpdu)
    elseif kind >= SHORT_FIRST then
        return "short TPDU"
    elseif name == "fragment" then
        text = fragment(cursor)
    elseif name == "report" then
        text = report(cursor)
    elseif name == "path ack" then
        text = path_ack(cursor)
    elseif name == "damage report" then
        text = damage_report(cursor)
    elseif name == "further parity" then
        text = further_parity(cursor)
    elseif name == "arrival map" then
        text = arrival_map(cursor)
    elseif name == "meet" then
        text = meet(cursor)
    elseif name == "met" then
        text = met(cursor)
    elseif name == "relayed" then
        text = relayed(cursor)
    else
        if name == "probe" or name == "probe reply" then
            text = string.format(" %d", cursor:number(f.number, 4) or 0)
            cursor:number(f.time, 4)
        end
        if not cursor.failed then
            cursor:rest(f.padding)
        end
    end
    return (name or "message") .. text
end

-- The frame at `at`, the `count`-th; gives where the next begins, if there is one.
local function frame(shared, tvb, pinfo, tree, at, count)
    local item = tree:add(proto, tvb:range(at))
    local cursor = shared.Cursor.new(tvb, item, shared.experts)
    cursor.at = at
    local kind, range, length = shared.frames.begin(cursor)
    if not kind then
        return shared.info(pinfo, "[no message type]")
    end
    item:add(f.type, range, kind)
    if length then
        item:add(f.more, range, 1)
    end
    if length and not cursor.failed then
        item:add(f.length, length, cursor:left())
        item:set_len(cursor.stop - at)
    end
    local following = length and not cursor.failed and cursor.stop or nil
    if count > shared.frames.MAX then
        cursor:fail("malformed", "more than 16 frames")
    elseif length and (TYPES[kind] == "repair" or TYPES[kind] == "window repair") then
        cursor:fail("malformed", "a repair symbol is not the last frame")
        following = nil
    elseif following == tvb:len() then
        cursor:fail("truncated", "a frame is announced, and none is there")
        following = nil
    end
    local is_short = kind >= SHORT_FIRST and TYPES[kind] and not cursor.failed
    local text, tpdu = message(cursor, kind)
    text = text .. (cursor.failed and " [" .. cursor.failed .. "]" or "")
    item:append_text(", " .. (TYPES[kind] or text))
    shared.info(pinfo, text)
    if tpdu then
        shared.call("fulmar.aerotp", tpdu:tvb(), pinfo, tree)
    elseif is_short then
        shared.call("fulmar.aerotp_short", tvb:range(at, cursor.stop - at):tvb(), pinfo, tree)
    end
    return count <= shared.frames.MAX and following
end

local function dissect(shared, tvb, pinfo, tree)
    pinfo.cols.protocol = "Session"
    local at, count = 0, 1
    while at do
        at, count = frame(shared, tvb, pinfo, tree, at, count), count + 1
    end
end

local inner = {}

function inner.register(shared)
    declare(shared)
    shared.read(proto, dissect)
end

return inner
