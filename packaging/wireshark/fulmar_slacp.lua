-- SLACP's frames: docs/protocol/slacp.md.
--
-- The check covers the sender's incarnation, which only hellos tell. It can be computed back from an intact frame, so a frame is
-- held for sound if that number was told, or if two frames on end had it. A damaged one gives another number: it is held for
-- damaged once the numbers of two ends are known.

local TYPES = { [0] = "data", "again", "parity", "ack", "control" }
local FORMS = { [0] = "floor", "hello", "challenge" }
local CRC_BYTES, LANES, RANGES_MAX = 4, 8, 64

local proto = nil
local f = {}
-- The incarnation of the last frame each way; those that are known, and how many; what was found of each frame.
local last, known, known_count, verdicts = {}, {}, 0, {}

local function declare(shared)
    local field
    proto, field = shared.declare("fulmar.slacp", "SLACP", f)
    field("type", "uint8", "Type", base.DEC, TYPES, 0xE0)
    field("lane", "uint8", "Lane", base.DEC, nil, 0x1C)
    field("form", "uint8", "Form", base.DEC, nil, 0x03)
    field("seq", "uint16", "Number")
    field("sources", "uint16", "Packets of the block")
    field("block", "uint8", "Block")
    field("index", "uint8", "Index")
    field("packet", "bytes", "Packet")
    field("symbol", "bytes", "Repair symbol")
    field("expected", "uint16", "Next number expected")
    field("peer", "uint32", "Incarnation acknowledged", base.HEX)
    field("end", "uint16", "One past the last that came")
    field("missing.start", "uint16", "Missing: first")
    field("missing.count", "uint16", "Missing: how many")
    field("floor", "uint16", "Floor")
    field("zero", "uint16", "Zero")
    field("incarnation", "uint32", "Incarnation", base.HEX)
    field("answer", "uint32", "Challenge answered", base.HEX)
    field("under_way", "uint8", "Lanes with packets under way", base.HEX)
    field("start", "uint16", "Next number of a lane")
    field("challenge", "uint32", "Challenge", base.HEX)
    field("check", "uint32", "Check", base.HEX)
    field("check.status", "uint8", "Check status", base.DEC, shared.Cursor.STATUS)
    field("sender", "uint32", "Incarnation of the sender, by the check", base.HEX)
    proto.fields = f
end

local function placed(cursor, field)
    local block, index = cursor:number(f.block, 1), cursor:number(f.index, 1)
    if index and cursor:left() == 0 then
        cursor:fail("truncated", "nothing is carried")
    end
    return string.format(" (%d in block %d)", index or 0, block or 0), index and cursor:rest(field)
end

local function ack(cursor)
    local expected = cursor:number(f.expected, 2)
    cursor:number(f.peer, 4)
    local stop = cursor:number(f["end"], 2)
    if not stop then
        return ""
    end
    local span, least, count = (stop - expected) % 65536, 0, 0
    if cursor:left() % 4 ~= 0 or cursor:left() / 4 > RANGES_MAX then
        cursor:fail("malformed", "ranges that do not fill the frame")
    end
    while cursor:left() >= 4 and not cursor.failed do
        local start, length = cursor:number(f["missing.start"], 2), cursor:number(f["missing.count"], 2)
        start, count = (start - expected) % 65536, count + 1
        if start < least or length == 0 or start + length >= span then
            cursor:fail("malformed", "missing ranges that are not in order, apart and before the end")
        end
        least = start + length + 1
    end
    return string.format(" expects %d, came up to %d, %d ranges missing", expected, stop, count)
end

local function hello(cursor)
    cursor:number(f.zero, 2)
    local incarnation, reply = cursor:number(f.incarnation, 4), cursor:number(f.answer, 4)
    cursor:number(f.under_way, 1)
    for _ = 1, LANES do
        cursor:number(f.start, 2)
    end
    if incarnation == 0 then
        cursor:fail("malformed", "an incarnation of zero")
    end
    return string.format(" of %08x%s", incarnation or 0, reply and reply ~= 0 and string.format(" to %08x", reply) or ""), nil, incarnation
end

local BODIES = {
    data = function(cursor)
        local seq = cursor:number(f.seq, 2)
        if seq and cursor:left() == 0 then
            cursor:fail("malformed", "no packet")
        end
        return " " .. tostring(seq), seq and cursor:rest(f.packet)
    end,
    again = function(cursor)
        local seq = cursor:number(f.seq, 2)
        local text, inner = placed(cursor, f.packet)
        return " " .. tostring(seq) .. text, inner
    end,
    parity = function(cursor)
        local sources = cursor:number(f.sources, 2)
        if sources and (sources == 0 or sources > 255) then
            cursor:fail("malformed", "a block of no such number of packets")
        end
        return string.format(" over %s%s", tostring(sources), (placed(cursor, f.symbol)))
    end,
    ack = ack,
    floor = function(cursor) return " " .. tostring(cursor:number(f.floor, 2)) end,
    hello = hello,
    challenge = function(cursor)
        cursor:number(f.zero, 2)
        return string.format(" %08x", cursor:number(f.challenge, 4) or 0)
    end,
}

local function learn(sender)
    if not known[sender] then
        known[sender], known_count = true, known_count + 1
    end
end

-- What a frame of the incarnation `sender` is: 0 damaged, 1 sound, 2 nobody can know yet.
local function verdict(pinfo, sender)
    local way = tostring(pinfo.src) .. " " .. tostring(pinfo.dst)
    if last[way] == sender then
        learn(sender)
    end
    last[way] = sender
    return known[sender] and 1 or known_count >= 2 and 0 or 2
end

local function check(shared, cursor, item, introduces, pinfo)
    local range = cursor.tvb:range(cursor.stop, CRC_BYTES)
    local sender = shared.sums.crc32_prefix(cursor:raw(0, cursor.stop), range:uint())
    local key = pinfo.number .. " " .. sender
    if not verdicts[key] then
        verdicts[key] = introduces and (sender == 0 and 1 or 0) or verdict(pinfo, sender)
    end
    local check_item = item:add(f.check, range)
    item:add(f["check.status"], range, verdicts[key]):set_generated()
    if verdicts[key] == 0 then
        check_item:add_proto_expert_info(shared.experts.payload_check, "Payload check failed")
    elseif not introduces then
        item:add(f.sender, range, sender):set_generated()
    end
    return verdicts[key]
end

local function dissect(shared, tvb, pinfo, tree)
    pinfo.cols.protocol = "SLACP"
    local item = tree:add(proto, tvb:range())
    local cursor = shared.Cursor.new(tvb, item, shared.experts)
    local range = cursor:range(1)
    if not range or tvb:len() < 3 + CRC_BYTES then
        cursor:fail("truncated", "shorter than any frame")
        return shared.info(pinfo, "[" .. cursor.failed .. "]")
    end
    for _, name in ipairs { "type", "lane", "form" } do
        item:add(f[name], range)
    end
    local first = range:uint()
    local kind, lane, form = bit.rshift(first, 5), bit.band(bit.rshift(first, 2), 7), first % 4
    local name = TYPES[kind]
    if name == "control" then
        name = FORMS[form]
    elseif form ~= 0 then
        name = nil
    end
    cursor.stop = tvb:len() - CRC_BYTES
    local status = check(shared, cursor, item, name == "hello" or name == "challenge", pinfo)
    local text, inner, incarnation = "unknown type", nil, nil
    if name then
        text, inner, incarnation = BODIES[name](cursor)
        text = string.format("%s lane=%d%s", name, lane, text)
        if not cursor.failed and cursor:left() > 0 then
            cursor:fail("malformed", string.format("%d octets more than %s has", cursor:left(), name))
        end
    else
        cursor:fail("unknown", "a type or form without a meaning")
    end
    if incarnation and status == 1 then
        learn(incarnation)
    end
    text = text .. (status == 0 and " [damaged]" or "") .. (cursor.failed and " [" .. cursor.failed .. "]" or "")
    item:append_text(", " .. text)
    shared.info(pinfo, text)
    -- A network header has a check of its own.
    if inner and status ~= 0 then
        shared.call("fulmar.network", inner:tvb(), pinfo, tree)
    end
end

local slacp = {}

function slacp.register(shared)
    declare(shared)
    function proto.init()
        last, known, known_count, verdicts = {}, {}, 0, {}
    end
    shared.read(proto, dissect)
end

return slacp
