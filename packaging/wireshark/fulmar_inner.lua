-- What is inside a session's data datagram once it is opened: docs/protocol/session.md, section 5.

local TYPES = { [0] = "TPDU", "heartbeat", "probe", "probe reply", "close", "fragment", "report" }
local FRAGMENTS_MAX = 64
local REPORT_VERSION = 1
local CLASS_BYTES = 25

local proto = nil
local f = {}

local function declare(shared)
    local field
    proto, field = shared.declare("fulmar.inner", "Fulmar session message", f)
    field("type", "uint8", "Message type", base.DEC, TYPES)
    field("tpdu", "bytes", "TPDU")
    field("number", "uint32", "Number")
    field("time", "uint32", "Time (us)")
    field("index", "uint8", "Index")
    field("count", "uint8", "Count")
    field("piece", "bytes", "Piece of a TPDU")
    field("padding", "bytes", "Padding")
    field("sent", "uint64", "Datagrams sent")
    field("heard", "uint64", "Datagrams of the other end, as it said")
    field("arrived", "uint64", "Datagrams of these that arrived")
    field("version", "uint8", "Version of the splice's report")
    field("recovered", "uint64", "TPDUs recovered by parity")
    field("residual", "uint64", "TPDUs given up")
    field("class", "uint8", "Class")
    field("expected", "uint64", "Messages expected")
    field("delivered", "uint64", "Messages delivered")
    field("octets", "uint64", "Octets delivered")
    field("report", "bytes", "Report of another version")
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
        cursor:number(f.class, 1)
        cursor:number64(f.expected)
        cursor:number64(f.delivered)
        cursor:number64(f.octets)
    end
    if not cursor.failed and cursor:left() > 0 then
        cursor:fail("malformed", "a class is cut off")
    end
    return text
end

local function dissect(shared, tvb, pinfo, tree)
    pinfo.cols.protocol = "Session"
    local item = tree:add(proto, tvb:range())
    local cursor = shared.Cursor.new(tvb, item, shared.experts)
    local kind = cursor:number(f.type, 1)
    local name, text, tpdu = TYPES[kind], "", nil
    if not kind then
        return shared.info(pinfo, "[no message type]")
    elseif not name then
        cursor:fail("unknown", "a message of unknown type")
    elseif name == "TPDU" then
        tpdu = cursor:rest(f.tpdu)
    elseif name == "fragment" then
        text = fragment(cursor)
    elseif name == "report" then
        text = report(cursor)
    else
        if name == "probe" or name == "probe reply" then
            text = string.format(" %d", cursor:number(f.number, 4) or 0)
            cursor:number(f.time, 4)
        end
        if not cursor.failed then
            cursor:rest(f.padding)
        end
    end
    text = (name or "message") .. text .. (cursor.failed and " [" .. cursor.failed .. "]" or "")
    item:append_text(", " .. text)
    shared.info(pinfo, text)
    if tpdu then
        shared.call("fulmar.aerotp", tpdu:tvb(), pinfo, tree)
    end
end

local inner = {}

function inner.register(shared)
    declare(shared)
    shared.read(proto, dissect)
end

return inner
