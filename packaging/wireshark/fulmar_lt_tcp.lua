-- LT-TCP's segments: docs/protocol/lt-tcp.md.

local KINDS = { "unit", "feedback" }
-- From the least significant bit on; as tcpdump prints them.
local FLAGS = { "fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr" }
local LETTERS = { "F", "S", "R", "P", ".", "U", "E", "W" }
local HEADER_BYTES = 20
local BLOCK_OCTETS_MAX = 2 ^ 24
local REPAIR_PREFIX_BYTES = 2
local RUNS_MAX = 4
-- The checksum's pseudo header has TCP's number.
local PSEUDO_PROTOCOL = 6

local proto = nil
local f = {}

local function declare(shared)
    local field
    proto, field = shared.declare("fulmar.lt_tcp", "LT-TCP", f)
    field("srcport", "uint16", "Source port")
    field("dstport", "uint16", "Destination port")
    field("seq", "uint32", "Sequence number")
    field("ack", "uint32", "Acknowledgement")
    field("offset", "uint8", "Octets of the header")
    field("flags", "uint8", "Flags", base.HEX)
    for at, name in ipairs(FLAGS) do
        field("flags." .. name, "bool", name:upper(), 8, nil, 2 ^ (at - 1))
    end
    field("window", "uint16", "Window")
    field("checksum", "uint16", "Checksum", base.HEX)
    field("checksum.status", "uint8", "Checksum status", base.DEC, shared.Cursor.STATUS)
    field("urgent", "uint16", "Urgent pointer")
    field("option.mss", "uint16", "Maximum segment size")
    field("option.scale", "uint8", "Window scale")
    field("option.sack_permitted", "bool", "SACK permitted")
    field("option.timestamp", "uint32", "Timestamp")
    field("option.timestamp_echo", "uint32", "Timestamp echoed")
    field("option.sack_start", "uint32", "SACK: first octet")
    field("option.sack_end", "uint32", "SACK: one past the last")
    field("option.other", "bytes", "Other option")
    field("kind", "uint8", "Extension", base.DEC, KINDS)
    for _, name in ipairs { "index", "k", "n" } do
        field("unit." .. name, "uint8", name:len() == 1 and name or "Index")
    end
    field("unit.ordinal", "uint16", "Ordinal")
    field("unit.block", "uint16", "Block")
    field("unit.length", "uint32", "Octets of the block")
    field("unit.source", "bytes", "Octets of the stream")
    field("unit.symbol", "bytes", "Repair symbol")
    field("feedback.reports", "uint8", "Blocks", base.DEC, nil, 0xF0)
    field("feedback.runs", "uint8", "Runs", base.DEC, nil, 0x0F)
    field("feedback.arrived_end", "uint16", "Arrived up to")
    field("feedback.arrivals", "uint16", "Arrivals")
    field("feedback.loss", "uint16", "Loss, in 1/65535")
    field("feedback.deviation", "uint16", "Its mean deviation, in 1/65535")
    field("report.block", "uint16", "Block")
    field("report.received", "uint8", "Units received")
    field("report.needed", "uint8", "Units needed")
    field("report.lost", "uint8", "Units lost")
    field("run.start", "uint32", "Run: first octet")
    field("run.end", "uint32", "Run: one past the last")
    proto.fields = f
end

-- The four octets of an IPv4 or node address, or nil.
local function octets_of(address)
    local a, b, c, d = tostring(address):match("^(%d+)%.(%d+)%.(%d+)%.(%d+)$")
    return a and string.char(a, b, c, d)
end

local function options(cursor)
    local function pairs_of(first, second, count)
        for _ = 1, count do
            cursor:number(f[first], 4)
            cursor:number(f[second], 4)
        end
    end
    while cursor:left() > 0 and not cursor.failed do
        local kind = cursor:range(1):uint()
        if kind == 0 then
            return
        end
        if kind ~= 1 then
            local length = cursor:range(1, "an option's length")
            length = length and length:uint()
            if not length or length < 2 or length - 2 > cursor:left() then
                cursor:fail("malformed", "an option with an impossible length")
            elseif kind == 2 and length == 4 then
                cursor:number(f["option.mss"], 2)
            elseif kind == 3 and length == 3 then
                cursor:number(f["option.scale"], 1)
            elseif kind == 4 and length == 2 then
                cursor.tree:add(f["option.sack_permitted"], cursor.tvb:range(cursor.at - 2, 2), true)
            elseif kind == 5 and (length - 2) % 8 == 0 then
                pairs_of("option.sack_start", "option.sack_end", (length - 2) / 8)
            elseif kind == 8 and length == 10 then
                pairs_of("option.timestamp", "option.timestamp_echo", 1)
            elseif length > 2 then
                cursor:add(f["option.other"], length - 2)
            end
        end
    end
end

local function unit(cursor)
    local index = cursor:number(f["unit.index"], 1)
    local ordinal, block = cursor:number(f["unit.ordinal"], 2), cursor:number(f["unit.block"], 2)
    local k, n = cursor:number(f["unit.k"], 1), cursor:number(f["unit.n"], 1)
    local length = cursor:number(f["unit.length"], 4)
    if not length then
        return ""
    end
    local wanted = 0
    if k == 0 then
        if block + index + n + length > 0 then
            cursor:fail("malformed", "a block without sources")
        end
    else
        local each = math.ceil(length / k)
        wanted = index < k and math.max(math.min(each, length - index * each), 0) or each + REPAIR_PREFIX_BYTES
        if length == 0 or length > BLOCK_OCTETS_MAX or (k - 1) * each >= length then
            cursor:fail("malformed", "no block is like this")
        end
    end
    if cursor:left() ~= wanted then
        cursor:fail("malformed", string.format("%d octets where this unit has %d", cursor:left(), wanted))
    end
    cursor:rest(index < k and f["unit.source"] or f["unit.symbol"])
    if k == 0 then
        return string.format(" no block, ordinal=%d", ordinal)
    end
    return string.format(" %s %d/%d of block %d, ordinal=%d len=%d", index < k and "source" or "parity", index, n, block, ordinal,
        wanted)
end

local function feedback(cursor)
    local range = cursor:range(1, "counts")
    if not range then
        return ""
    end
    cursor.tree:add(f["feedback.reports"], range)
    cursor.tree:add(f["feedback.runs"], range)
    local reports, runs = math.floor(range:uint() / 16), range:uint() % 16
    local arrived = cursor:number(f["feedback.arrived_end"], 2)
    cursor:number(f["feedback.arrivals"], 2)
    local loss = cursor:number(f["feedback.loss"], 2)
    cursor:number(f["feedback.deviation"], 2)
    if not loss then
        return ""
    end
    if runs > RUNS_MAX or cursor:left() ~= reports * 5 + runs * 8 then
        cursor:fail("malformed", "lists that do not fill the segment")
        return ""
    end
    for _ = 1, reports do
        cursor:number(f["report.block"], 2)
        for _, name in ipairs { "received", "needed", "lost" } do
            cursor:number(f["report." .. name], 1)
        end
    end
    for _ = 1, runs do
        cursor:number(f["run.start"], 4)
        cursor:number(f["run.end"], 4)
    end
    return string.format(" feedback up to %d, loss=%.3f, %d blocks, %d runs", arrived, loss / 65535, reports, runs)
end

local function header(shared, cursor, item, pinfo)
    local source, destination = cursor:number(f.srcport, 2), cursor:number(f.dstport, 2)
    local seq, ack = cursor:number(f.seq, 4), cursor:number(f.ack, 4)
    local offset = cursor:range(1, "the data offset")
    if not offset then
        return nil
    end
    local header_bytes = 4 * bit.rshift(offset:uint(), 4)
    item:add(f.offset, offset, header_bytes)
    local flags_item, flags = cursor:add(f.flags, 1)
    local window = cursor:number(f.window, 2)
    local checksum = cursor:range(2)
    cursor:number(f.urgent, 2)
    if not checksum or cursor.failed then
        return nil
    end
    local letters = ""
    for at, name in ipairs(FLAGS) do
        flags_item:add(f["flags." .. name], flags)
        letters = letters .. (bit.band(flags:uint(), 2 ^ (at - 1)) ~= 0 and LETTERS[at] or "")
    end
    local octets, from, to = cursor:raw(0, cursor.stop), octets_of(pinfo.src), octets_of(pinfo.dst)
    local computed = nil
    if from and to then
        local length = string.char(math.floor(#octets / 256) % 256, #octets % 256)
        computed = shared.sums.internet(from .. to .. string.char(0, PSEUDO_PROTOCOL) .. length
            .. octets:sub(1, 16) .. "\0\0" .. octets:sub(19))
    end
    local is_sound = cursor:check(f.checksum, f["checksum.status"], checksum, computed, "payload_check")
    if header_bytes < HEADER_BYTES or header_bytes > cursor.stop then
        cursor:fail("malformed", "a data offset outside of the segment")
        return nil
    end
    local list = shared.Cursor.new(cursor.tvb, item, shared.experts, header_bytes)
    list.at = cursor.at
    options(list)
    cursor.at, cursor.failed = header_bytes, list.failed
    return string.format("%d → %d [%s] seq=%d ack=%d win=%d", source, destination, letters, seq, ack, window), is_sound
end

local function dissect(shared, tvb, pinfo, tree)
    pinfo.cols.protocol = "LT-TCP"
    local item = tree:add(proto, tvb:range())
    local cursor = shared.Cursor.new(tvb, item, shared.experts)
    local text, is_sound = header(shared, cursor, item, pinfo)
    if not text then
        return shared.info(pinfo, "[" .. (cursor.failed or "damaged") .. "]")
    end
    if cursor:left() > 0 and not cursor.failed then
        local kind = cursor:number(f.kind, 1)
        if kind == 1 then
            text = text .. unit(cursor)
        elseif kind == 2 then
            text = text .. feedback(cursor)
        else
            cursor:fail("unknown", "an extension of unknown kind")
        end
    end
    item:append_text(", " .. text)
    shared.info(pinfo, text .. (is_sound and "" or " [damaged]") .. (cursor.failed and " [" .. cursor.failed .. "]" or ""))
end

local lt_tcp = {}

function lt_tcp.register(shared)
    declare(shared)
    shared.read(proto, dissect)
    -- The simulator's packets: protocol 254 (RFC 3692) below IPv4's shape.
    DissectorTable.get("ip.proto"):add(254, proto)
end

return lt_tcp
