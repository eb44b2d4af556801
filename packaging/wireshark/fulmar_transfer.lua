-- What the two ends of a file transfer say to each other: the records of crates/net/src/transfer/record.rs.

local TYPES = {
    [1] = "HELLO", [2] = "OFFER", [3] = "START", [4] = "DATA", [5] = "END", [6] = "DONE", [7] = "REFUSE", [8] = "PING",
    [9] = "LEAVE",
}
local REASONS = { "exists", "name", "storage", "protocol", "busy", "stopped" }
local VERSION = 1
local HEAD_BYTES = 5
local BODY_BYTES_MAX = 1024
local DATA_BODY_BYTES_MAX = 8 + 32768

local proto, message_proto = nil, nil
local f = {}

local function declare(shared)
    local field
    proto, field = shared.declare("fulmar.transfer", "Fulmar file transfer", f)
    field("type", "uint8", "Type", base.DEC, TYPES)
    field("length", "uint32", "Length of the body")
    field("version", "uint8", "Version")
    field("mode", "uint8", "Mode", base.DEC, shared.modes)
    field("flags", "uint8", "Flags", base.HEX)
    field("flags.seekable", "bool", "Seekable", 8, nil, 1)
    field("flags.sized", "bool", "Sized", 8, nil, 2)
    field("id", "uint64", "Transfer")
    field("size", "uint64", "Size (octets)")
    field("name", "string", "Name")
    field("offset", "uint64", "Offset")
    field("digest", "bytes", "BLAKE3 digest")
    field("data", "bytes", "Octets of the file")
    field("delivered", "uint64", "Delivered (octets)")
    field("missing", "uint64", "Missing (octets)")
    field("intact", "bool", "Intact")
    field("reason", "uint8", "Reason", base.DEC, REASONS)
    field("text", "string", "Text")
    proto.fields = f
    message_proto = Proto("fulmar.transfer_message", "Fulmar file transfer, a message")
    message_proto.fields = {
        ProtoField.uint32("fulmar.transfer_message.id", "Transfer, low half"),
        ProtoField.uint64("fulmar.transfer_message.offset", "Offset"),
        ProtoField.bytes("fulmar.transfer_message.data", "Octets of the file"),
    }
end

local function hello(cursor)
    local version = cursor:number(f.version, 1)
    if version and version ~= VERSION then
        cursor:fail("version", "version " .. version .. " of the file protocol")
    end
    cursor:number(f.mode, 1)
    local item, flags = cursor:add(f.flags, 1)
    if item then
        item:add(f["flags.seekable"], flags)
        item:add(f["flags.sized"], flags)
    end
    cursor:number64(f.id)
    cursor:number64(f.size)
    local name = cursor:text(f.name, cursor:left())
    return name and " " .. name or ""
end

local BODIES = {
    HELLO = hello,
    OFFER = function(cursor)
        local offset = cursor:number64(f.offset)
        cursor:add(f.digest, 32)
        return " offset=" .. tostring(offset)
    end,
    START = function(cursor) return " offset=" .. tostring(cursor:number64(f.offset)) end,
    DATA = function(cursor)
        local offset = cursor:number64(f.offset)
        local length = cursor:left()
        if offset and length == 0 then
            cursor:fail("malformed", "no octets")
        end
        cursor:rest(f.data)
        return string.format(" offset=%s len=%d", tostring(offset), length)
    end,
    END = function(cursor)
        local size = cursor:number64(f.size)
        cursor:add(f.digest, 32)
        return " size=" .. tostring(size)
    end,
    DONE = function(cursor)
        local delivered, missing = cursor:number64(f.delivered), cursor:number64(f.missing)
        local intact = cursor:number(f.intact, 1)
        return string.format(" delivered=%s missing=%s%s", tostring(delivered), tostring(missing),
            intact == 1 and " intact" or "")
    end,
    REFUSE = function(cursor)
        local reason = cursor:number(f.reason, 1)
        if reason and not REASONS[reason] then
            cursor:fail("malformed", "a reason without a meaning")
        end
        cursor:text(f.text, cursor:left())
        return reason and " " .. (REASONS[reason] or reason) or ""
    end,
    PING = function() return "" end,
    LEAVE = function(cursor)
        cursor:number64(f.id)
        return ""
    end,
}

local transfer = {}

function transfer.register(shared)
    declare(shared)
    -- How long the record is that `octets` begin (streams.lua).
    function shared.transfer_length(octets)
        if #octets < HEAD_BYTES then
            return nil
        end
        local kind, a, b, c, d = octets:byte(1, HEAD_BYTES)
        local length = ((a * 256 + b) * 256 + c) * 256 + d
        local most = TYPES[kind] == "DATA" and DATA_BODY_BYTES_MAX or BODY_BYTES_MAX
        return TYPES[kind] ~= nil and length <= most and HEAD_BYTES + length
    end
    -- One record.
    function shared.transfer_record(tvb, tree)
        local item = tree:add(proto, tvb:range())
        local cursor = shared.Cursor.new(tvb, item, shared.experts)
        local kind = cursor:number(f.type, 1)
        local length = cursor:number(f.length, 4)
        if length and cursor:left() ~= length then
            cursor:fail(cursor:left() < length and "truncated" or "malformed",
                string.format("a body of %d octets where its length says %d", cursor:left(), length))
        end
        local name, text = TYPES[kind], nil
        if name then
            text = name .. BODIES[name](cursor)
            if not cursor.failed and cursor:left() > 0 then
                cursor:fail("malformed", string.format("%d octets more than %s has", cursor:left(), name))
            end
        else
            text = "type " .. tostring(kind)
            cursor:fail("unknown", "a record of unknown type")
        end
        item:append_text(", " .. text)
        return cursor.failed and text .. " [" .. cursor.failed .. "]" or text
    end
    shared.read(proto, function(_, tvb, pinfo, tree)
        pinfo.cols.protocol = "Transfer"
        shared.info(pinfo, shared.transfer_record(tvb, tree))
    end)
    shared.read(message_proto, function(_, tvb, pinfo, tree)
        pinfo.cols.protocol = "Transfer"
        local item = tree:add(message_proto, tvb:range())
        local cursor = shared.Cursor.new(tvb, item, shared.experts)
        cursor:number(message_proto.fields[1], 4)
        local offset = cursor:number64(message_proto.fields[2])
        local length = cursor:left()
        cursor:rest(message_proto.fields[3])
        shared.info(pinfo, string.format("message offset=%s len=%d", tostring(offset), length))
    end)
end

return transfer
