-- The frames of the link layers plain, ARQ and LL-HARQ: crates/baseline/src/wire/link.

local KINDS = {
    [0x10] = "plain data",
    [0x20] = "ARQ data", [0x21] = "ARQ again", [0x22] = "ARQ advance", [0x23] = "ARQ ack", [0x24] = "ARQ challenge",
    [0x25] = "ARQ answer", [0x26] = "ARQ request",
    [0x30] = "HARQ source", [0x31] = "HARQ parity", [0x32] = "HARQ feedback", [0x33] = "HARQ challenge", [0x34] = "HARQ answer",
    [0x35] = "HARQ second", [0x36] = "HARQ feedback with damage",
}
-- Units are short, and so is their check.
local HEC_KINDS = { [0x30] = true, [0x31] = true, [0x35] = true }
local BITS_BYTES_MAX, REPORTS_MAX, RANGES_MAX = 128, 256, 64
local STILL_COMING, LEFT_OPEN = 255, 255
local FIRST_PART, LAST_PART = 0x80, 0x40
local CRC_BYTES = 4

local proto = nil
local f = {}

local function declare(shared)
    local field
    proto, field = shared.declare("fulmar.link", "Fulmar link", f)
    field("kind", "uint8", "Kind", base.HEX, KINDS)
    field("epoch", "uint16", "Epoch")
    field("number", "uint16", "Number")
    field("base", "uint16", "Base")
    field("next", "uint16", "Next")
    field("bits", "bytes", "Arrived behind the next")
    field("range.first", "uint16", "First of a range")
    field("range.count", "uint16", "Frames of a range")
    field("challenge", "uint32", "Challenge", base.HEX)
    field("serial", "uint8", "Serial")
    field("block", "uint16", "Block")
    field("before", "uint8", "Sources of the block before")
    field("index", "uint8", "Index")
    field("row", "uint8", "Row")
    field("span", "uint8", "Sources spanned")
    field("left", "uint8", "Units left")
    field("place.first", "bool", "First part", 8, nil, FIRST_PART)
    field("place.last", "bool", "Last part", 8, nil, LAST_PART)
    field("place.packet", "uint8", "Packet of the block", base.DEC, nil, 0x3F)
    field("part", "bytes", "Part of a packet")
    field("symbol", "bytes", "Repair symbol")
    field("loss", "uint16", "Loss, in 1/65535")
    field("damage", "uint16", "Damage, in 1/65535")
    field("margin", "uint8", "Margin, in 1/16 deviation")
    field("answer_margin", "uint8", "Answer margin, in 1/16 deviation")
    field("report.span", "uint8", "Sources heard of")
    field("report.need", "uint8", "Symbols needed")
    field("packet", "bytes", "Packet")
    field("packet_crc", "uint32", "CRC-32 of the packet", base.HEX)
    field("packet_crc.status", "uint8", "Status of the packet's CRC-32", base.DEC, shared.Cursor.STATUS)
    field("check", "uint32", "Check", base.HEX)
    field("check.status", "uint8", "Check status", base.DEC, shared.Cursor.STATUS)
    proto.fields = f
end

local function packet(cursor)
    if cursor:left() == 0 then
        cursor:fail("truncated", "no packet")
        return nil
    end
    return cursor:rest(f.packet)
end

local function arq_data(cursor)
    cursor:number(f.epoch, 2)
    local number, lowest = cursor:number(f.number, 2), cursor:number(f.base, 2)
    return string.format(" %d base=%d", number or 0, lowest or 0), lowest and packet(cursor)
end

local function answer(cursor)
    cursor:number(f.epoch, 2)
    local lowest = cursor:number(f.base, 2)
    return string.format(" base=%d to %08x", lowest or 0, cursor:number(f.challenge, 4) or 0)
end

local function challenge(cursor)
    return string.format(" %08x", cursor:number(f.challenge, 4) or 0)
end

local function unit_head(cursor)
    cursor:number(f.epoch, 2)
    local serial, block = cursor:number(f.serial, 1), cursor:number(f.block, 2)
    cursor:number(f.before, 1)
    return string.format(" %d block=%d", serial or 0, block or 0)
end

-- A source of one part is a whole packet and its CRC-32.
local function source(cursor, shared)
    local text = unit_head(cursor)
    local index = cursor:number(f.index, 1)
    if not index then
        return text
    end
    text = text .. " index=" .. index
    if cursor:left() == 0 then
        cursor:fail("malformed", "no octets")
        return text
    end
    local place = cursor:range(1)
    for _, name in ipairs { "place.first", "place.last", "place.packet" } do
        cursor.tree:add(f[name], place)
    end
    local is_whole = place:uint() >= FIRST_PART + LAST_PART
    if not is_whole or cursor:left() <= CRC_BYTES then
        cursor:rest(f.part)
        return text
    end
    local from, to = cursor.at, cursor.stop - CRC_BYTES
    local range = cursor:range(to - from)
    cursor.tree:add(f.packet, range)
    local is_sound = cursor:check(f.packet_crc, f["packet_crc.status"], cursor:range(CRC_BYTES),
        shared.sums.crc32(cursor:raw(from, to)), "payload_check")
    return text, is_sound and range
end

local function parity(cursor)
    local text = unit_head(cursor)
    local row, span, left = cursor:number(f.row, 1), cursor:number(f.span, 1), cursor:number(f.left, 1)
    if not left then
        return text
    end
    if span == 0 or cursor:left() == 0 then
        cursor:fail("malformed", span == 0 and "a row over no sources" or "no octets")
    end
    cursor:rest(f.symbol)
    return string.format("%s row=%d over %d%s", text, row, span, left == LEFT_OPEN and "" or ", " .. left .. " to come")
end

local function harq_feedback(cursor, tells_damage)
    cursor:number(f.epoch, 2)
    local next_block, loss = cursor:number(f.next, 2), cursor:number(f.loss, 2)
    cursor:number(f.margin, 1)
    cursor:number(f.answer_margin, 1)
    if tells_damage then
        cursor:number(f.damage, 2)
    end
    if cursor.failed then
        return ""
    end
    if cursor:left() % 2 ~= 0 or cursor:left() / 2 > REPORTS_MAX then
        cursor:fail("malformed", "reports that do not fill the frame")
    end
    local needs = {}
    while cursor:left() >= 2 and not cursor.failed do
        local span, need = cursor:number(f["report.span"], 1), cursor:number(f["report.need"], 1)
        needs[#needs + 1] = need == STILL_COMING and "coming" or need .. "/" .. span
    end
    local shown = table.concat(needs, " ", 1, math.min(#needs, 8)) .. (#needs > 8 and " .." or "")
    return string.format(" next=%d loss=%.3f needs %s", next_block, loss / 65535, shown)
end

local function request(cursor)
    cursor:number(f.epoch, 2)
    if not cursor.failed and (cursor:left() % 4 ~= 0 or cursor:left() / 4 > RANGES_MAX) then
        cursor:fail("malformed", "ranges that do not fill the frame")
    end
    local ranges = {}
    while cursor:left() >= 4 and not cursor.failed do
        local first, count = cursor:number(f["range.first"], 2), cursor:number(f["range.count"], 2)
        if count == 0 then
            cursor:fail("malformed", "an empty range")
        end
        ranges[#ranges + 1] = first .. "+" .. count
    end
    return " of " .. table.concat(ranges, " ", 1, math.min(#ranges, 8)) .. (#ranges > 8 and " .." or "")
end

local BODIES = {
    [0x10] = function(cursor) return "", packet(cursor) end,
    [0x20] = arq_data,
    [0x21] = arq_data,
    [0x22] = function(cursor)
        cursor:number(f.epoch, 2)
        return " base=" .. tostring(cursor:number(f.base, 2))
    end,
    [0x23] = function(cursor)
        cursor:number(f.epoch, 2)
        local text = " next=" .. tostring(cursor:number(f.next, 2))
        if not cursor.failed and cursor:left() > BITS_BYTES_MAX then
            cursor:fail("malformed", "more bits than a window has")
        end
        cursor:rest(f.bits)
        return text
    end,
    [0x24] = challenge,
    [0x25] = answer,
    [0x26] = request,
    [0x30] = source,
    [0x31] = parity,
    [0x32] = function(cursor) return harq_feedback(cursor, false) end,
    [0x33] = challenge,
    [0x34] = answer,
    [0x35] = parity,
    [0x36] = function(cursor) return harq_feedback(cursor, true) end,
}

local function dissect(shared, tvb, pinfo, tree)
    pinfo.cols.protocol = "Link"
    local item = tree:add(proto, tvb:range())
    local cursor = shared.Cursor.new(tvb, item, shared.experts)
    local kind = cursor:number(f.kind, 1)
    local name = kind and KINDS[kind]
    local check_bytes = HEC_KINDS[kind] and 2 or CRC_BYTES
    if not name or tvb:len() < 1 + check_bytes then
        cursor:fail(name and "truncated" or "unknown", name and "shorter than its check" or "a kind of no link layer")
        return shared.info(pinfo, (name or "frame") .. " [" .. cursor.failed .. "]")
    end
    local stop = tvb:len() - check_bytes
    local octets = cursor:raw(0, stop)
    local computed = HEC_KINDS[kind] and shared.sums.hec(octets) or shared.sums.crc32(octets)
    local is_sound = cursor:check(f.check, f["check.status"], tvb:range(stop, check_bytes), computed, "payload_check")
    cursor.stop = stop
    local text, inner = BODIES[kind](cursor, shared)
    if not cursor.failed and cursor:left() > 0 then
        cursor:fail("malformed", string.format("%d octets more than %s has", cursor:left(), name))
    end
    text = name .. text .. (is_sound and "" or " [damaged]") .. (cursor.failed and " [" .. cursor.failed .. "]" or "")
    item:append_text(", " .. text)
    shared.info(pinfo, text)
    -- What a frame carries that fails its check is as good as lost.
    if inner and is_sound then
        shared.call("fulmar.network", inner:tvb(), pinfo, tree)
    end
end

local link = {}

function link.register(shared)
    declare(shared)
    shared.read(proto, dissect)
end

return link
