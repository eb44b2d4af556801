-- AeroTP's TPDUs in the short form, each a frame in a session's content: docs/protocol/aerotp.md, section 11.
--
-- The fields are those of the long form, so that one filter finds both. Numbers are shown as they are cut, to 24 bits;
-- times in microseconds, of which 28 bits are left.

local TIME_UNIT_US = 16
local NUMBERS_MAX, SPAN = 4096, 8388608

local proto = nil

local function is_set(octet, bit_of)
    return bit.band(octet, bit_of) ~= 0
end

-- A flag of the TPDU. A `frame` has the cursor and tree item, the range and value of its type, and in `head` what is told of the TPDU.
local function flag(frame, name, range, value)
    frame.aerotp.flag(frame.item, name, range, value)
    frame.head.flags[name] = value
end

local function opened(frame, range, value)
    frame.item:add(frame.aerotp.fields.opened, range, value and 1 or 0)
    frame.opened = value
end

-- The ports and the mode that a name stands for, where they were captured.
local function name(frame)
    local fields = frame.aerotp.fields
    local item, range = frame.cursor:add(fields.name, 2)
    if not item then
        return
    end
    frame.name = range:uint()
    item:append_text(" (" .. frame.names.text(frame.name) .. ")")
    local ends = frame.names:find(frame.pinfo, frame.name, frame.opened)
    if ends then
        frame.head.source, frame.head.destination, frame.head.mode = ends.source, ends.destination, ends.mode
        frame.item:add(fields.srcport, range, ends.source):set_generated()
        frame.item:add(fields.dstport, range, ends.destination):set_generated()
        frame.aerotp.mode(frame.item, range, ends.mode):set_generated()
    end
end

local function number(frame)
    frame.head.seq = frame.cursor:number(frame.aerotp.fields.seq, 3)
end

local function time(frame, field)
    local range = frame.cursor:range(3, "a time")
    if range then
        frame.item:add(frame.aerotp.fields[field], range, range:uint() * TIME_UNIT_US)
    end
end

-- The payload or symbol, to the end.
local function payload(frame, field)
    local body = frame.cursor:rest(frame.aerotp.fields[field])
    frame.text = body and " len=" .. body:len() or ""
    return body
end

-- Numbers as runs and gaps, from `base` on; descending in a MACK, ascending in a NACK.
local function ranges(frame, is_newest_first)
    local cursor, base = frame.cursor, frame.head.seq
    local step, edge, shown = is_newest_first and -1 or 1, nil, 0
    local function distance()
        local value = cursor:varint("a range")
        return value and math.min(value, SPAN)
    end
    while not cursor.failed and cursor:left() > 0 do
        local from, first = cursor.at, 0
        if edge then
            local gap = distance()
            first = gap and edge + step * (gap + 2)
        elseif is_newest_first then
            first = distance()
        end
        local further = distance()
        if not further then
            break
        end
        edge = first + step * further
        if math.min(first, edge) < 0 or math.max(first, edge) >= SPAN then
            cursor:fail("malformed", "a number that is not up to 2^23 - 1 behind the first")
            break
        end
        local range = cursor.tvb:range(from, cursor.at - from)
        for offset = first, edge, step do
            -- A NACK's first number has a field of its own.
            if (offset > 0 or is_newest_first) and shown < NUMBERS_MAX then
                frame.item:add(frame.aerotp.fields.number, range, (base + offset) % (2 * SPAN))
                shown = shown + 1
            end
        end
    end
    frame.text = (frame.text or "") .. (shown > 0 and " +" .. shown or "")
end

-- The octet of flags that MACK, NACK and unknown name begin with; `known` are the bits with a meaning.
local function flags_of(frame, known)
    local range = frame.cursor:range(1, "flags")
    local bits = range and range:uint() or 0
    if is_set(bits, 0xFF - known) then
        frame.cursor:fail("malformed", "bits set that must be zero")
    end
    if range then
        opened(frame, range, is_set(bits, 0x80))
    end
    return bits, range
end

local function mack(frame)
    local bits, range = flags_of(frame, 0xFC)
    local asyn, afin = is_set(bits, 0x40), is_set(bits, 0x20)
    if range then
        flag(frame, "asyn", range, asyn)
        flag(frame, "afin", range, afin)
        flag(frame, "echo", range, is_set(bits, 0x10))
    end
    if asyn and afin then
        frame.cursor:fail("malformed", "contradictory flags")
    end
    name(frame)
    number(frame)
    time(frame, "echoed")
    local said = { urg = is_set(bits, 0x08), psh = is_set(bits, 0x04) }
    frame.text = frame.aerotp.receiver_words(frame.cursor, said)
    ranges(frame, true)
    return asyn and "ASYNACK" or afin and "AFINACK" or "MACK"
end

local function nack(frame)
    local bits, range = flags_of(frame, 0xE0)
    if range then
        flag(frame, "urg", range, is_set(bits, 0x40))
        flag(frame, "echo", range, is_set(bits, 0x20))
    end
    name(frame)
    number(frame)
    time(frame, "echoed")
    ranges(frame, false)
    return "NACK"
end

local function unknown_name(frame)
    flags_of(frame, 0x80)
    name(frame)
    if not frame.cursor.failed and frame.cursor:left() > 0 then
        frame.cursor:fail("malformed", string.format("%d octets behind an unknown name", frame.cursor:left()))
    end
    return "unknown name"
end

local function repair(frame)
    opened(frame, frame.type, is_set(frame.code, 0x01))
    name(frame)
    number(frame)
    time(frame, "timestamp")
    local sources = frame.cursor:range(1, "the sources of a block")
    if sources then
        frame.item:add(frame.aerotp.fields["block.sources"], sources, sources:uint() + 1)
    end
    frame.cursor:number(frame.aerotp.fields["block.repair"], 1)
    if not payload(frame, "symbol") and not frame.cursor.failed then
        frame.cursor:fail("malformed", "no symbol")
    end
    return "repair"
end

local function window(frame)
    opened(frame, frame.type, is_set(frame.code, 0x01))
    name(frame)
    number(frame)
    local made = frame.cursor:range(2, "the TPDUs of a window")
    if made then
        frame.item:add(frame.aerotp.fields["window.density"], made(0, 1))
        frame.item:add(frame.aerotp.fields["window.sources"], made)
        if made:uint() % 4096 == 0 then
            frame.cursor:fail("malformed", "a window of no TPDU")
        end
    end
    frame.cursor:number(frame.aerotp.fields["window.key"], 2)
    if not payload(frame, "symbol") and not frame.cursor.failed then
        frame.cursor:fail("malformed", "no symbol")
    end
    return "window repair"
end

-- The number, the time and the payload of data.
local function timed(frame, has_time)
    if not has_time then
        frame.cursor:fail("malformed", "data without its time")
    end
    number(frame)
    time(frame, "timestamp")
    local body = payload(frame, "payload")
    if not body and not frame.cursor.failed and frame.head.mode and (frame.head.mode > 0 or frame.head.asyn) then
        frame.cursor:fail("malformed", "a body of 0 octets in data")
    end
    frame.body = not frame.cursor.failed and body
    return "data"
end

local function data(frame)
    opened(frame, frame.type, is_set(frame.code, 0x10))
    flag(frame, "psh", frame.type, is_set(frame.code, 0x04))
    flag(frame, "urg", frame.type, is_set(frame.code, 0x02))
    name(frame)
    return timed(frame, is_set(frame.code, 0x08))
end

local function full(frame)
    local head, fields, mode = frame.head, frame.aerotp.fields, frame.code % 8
    flag(frame, "asyn", frame.type, is_set(frame.code, 0x10))
    frame.aerotp.mode(frame.item, frame.type, mode)
    head.source, head.destination = frame.cursor:number(fields.srcport, 2), frame.cursor:number(fields.dstport, 2)
    head.mode, head.asyn = mode, head.flags.asyn
    if not frame.modes[mode] then
        frame.cursor:fail("unknown", "a reserved mode")
    elseif mode == 0 and head.asyn then
        frame.cursor:fail("malformed", "contradictory flags")
    elseif head.destination then
        frame.names:note(frame.pinfo, head.source, head.destination, mode)
    end
    return timed(frame, is_set(frame.code, 0x08))
end

local function reader_of(code)
    local known = { [0x20] = mack, [0x21] = nack, [0x22] = unknown_name, [0x30] = repair, [0x31] = repair,
        [0x32] = window, [0x33] = window }
    local is_data = code >= 0x40 and code < 0x60 and code % 2 == 0
    return known[code] or is_data and data or code >= 0x60 and code < 0x80 and full or nil
end

local function ends_of(frame)
    local head = frame.head
    if not head.source or not head.destination then
        return frame.name and "name " .. frame.names.text(frame.name) or "?"
    end
    return string.format("%d → %d %s", head.source, head.destination, frame.modes[head.mode] or "mode " .. head.mode)
end

local function dissect(shared, tvb, pinfo, tree)
    pinfo.cols.protocol = "AeroTP"
    local item = tree:add(shared.aerotp.proto, tvb:range())
    local cursor = shared.Cursor.new(tvb, item, shared.experts)
    local code, range = shared.frames.begin(cursor)
    local read = code and reader_of(code)
    if not read then
        cursor:fail("unknown", "no frame of the short form")
        return shared.info(pinfo, "no frame of the short form")
    end
    local frame = {
        cursor = cursor, item = item, pinfo = pinfo, aerotp = shared.aerotp, names = shared.names, modes = shared.modes,
        code = code, type = range, head = { flags = {}, is_cut = true },
    }
    local head = frame.head
    head.kind = read(frame)
    item:add(shared.aerotp.fields.kind, range, head.kind):set_generated()
    item:append_text(string.format(", %s %s", head.kind, head.seq or ""))
    local text = frame.text or ""
    if frame.body and head.destination then
        text = text .. shared.aerotp.carried(pinfo, tree, item, frame.body, head)
    end
    text = text .. (cursor.failed and " [" .. cursor.failed .. "]" or "")
    shared.info(pinfo, ends_of(frame) .. shared.aerotp.told(head) .. text)
    if head.message then
        shared.call(head.message[1], head.message[2], pinfo, tree)
    end
end

local short = {}

function short.register(shared)
    proto = shared.declare("fulmar.aerotp_short", "AeroTP, a frame of the short form", {})
    function proto.init()
        shared.names:reset()
    end
    shared.read(proto, dissect)
end

return short
