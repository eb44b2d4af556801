-- AeroTP's TPDUs: docs/protocol/aerotp.md.

local MODES = nil
-- Modes in which the application's octets are one stream.
local STREAM_MODES = { [3] = true, [4] = true, [6] = true }
local HEADER_BYTES, DESCRIPTOR_BYTES, CRC_BYTES = 16, 4, 4
local NUMBERS_BYTES_MAX = 365 * 4
-- Where a packet was captured: what passed by there is followed by itself.
local interface_id = Field.new("frame.interface_id")
-- From the least significant bit of octets 12 and 13 on.
local FLAGS = { "afin", "asyn", "rst", "psh", "mack", "urg", "echo", "reduced", "block", "fec", "crc", "nack" }

local proto = nil
local f = {}

local function declare(shared)
    MODES = shared.modes
    local field
    proto, field = shared.declare("fulmar.aerotp", "AeroTP", f)
    field("srcport", "uint16", "Source port")
    field("dstport", "uint16", "Destination port")
    field("name", "uint16", "Name of the connection")
    field("opened", "bool", "The sender opened the connection")
    field("seq", "uint32", "Sequence number")
    field("timestamp", "uint32", "Timestamp (us)")
    field("echoed", "uint32", "Timestamp echoed (us)")
    field("mode", "uint16", "Mode", base.DEC, MODES, 0xF000)
    for bit_at, name in ipairs(FLAGS) do
        field("flags." .. name, "bool", name == "block" and "BLOCK or CUMULATIVE" or name:upper(), 16, nil, 2 ^ (bit_at - 1))
    end
    field("kind", "string", "Kind")
    field("hec", "uint16", "HEC", base.HEX)
    field("hec.status", "uint8", "HEC status", base.DEC, shared.Cursor.STATUS)
    field("fec.code", "uint8", "FEC code")
    field("fec.words", "uint16", "FEC words")
    field("block.code", "uint8", "Block code")
    field("block.sources", "uint16", "Sources of the block")
    field("block.repair", "uint8", "Repair index")
    field("window.density", "uint8", "Density of the window", base.DEC, nil, 0xF0)
    field("window.sources", "uint16", "TPDUs of the window", base.DEC, nil, 0x0FFF)
    field("window.key", "uint16", "Key of the window")
    field("payload", "bytes", "Payload")
    field("symbol", "bytes", "Repair symbol")
    field("mack.window", "uint16", "Window (TPDUs)")
    field("mack.hold", "uint16", "Hold (16 us)")
    field("mack.recent", "uint16", "Recent bit error rate, -1024 log2")
    field("mack.lasting", "uint16", "Lasting bit error rate, -1024 log2")
    field("mack.arrived", "uint32", "Octets arrived on the path")
    field("mack.clock", "uint32", "Receiver's clock (us)")
    field("number", "uint32", "Number")
    field("crc", "uint32", "CRC-32", base.HEX)
    field("crc.status", "uint8", "CRC-32 status", base.DEC, shared.Cursor.STATUS)
    field("parity", "bytes", "Parity")
    field("records", "uint32", "Records that this TPDU completed")
    field("partial", "uint32", "Octets of a record that goes on")
    proto.fields = f
end

-- The twelve flags of octets 12 and 13 by name.
local function flags_of(small)
    local flags = {}
    for at, name in ipairs(FLAGS) do
        flags[name] = bit.band(small, 2 ^ (at - 1)) ~= 0
    end
    flags.cumulative = flags.block and flags.mack
    flags.block = flags.block and not flags.mack
    return flags
end

local function only(flags, ...)
    local allowed = {}
    for _, name in ipairs { ... } do
        allowed[name] = true
    end
    for _, name in ipairs { "urg", "mack", "psh", "rst", "asyn", "afin", "nack" } do
        if flags[name] and not allowed[name] then
            return false
        end
    end
    return true
end

-- What a TPDU is (section 4 of the page), or nil and why it is none.
local function kind_of(flags, mode, body_bytes)
    local kind = nil
    if flags.block then
        kind = only(flags) and "repair"
    elseif flags.mack then
        local known = flags.cumulative and only(flags, "mack", "asyn", "afin", "psh", "urg") or only(flags, "mack", "asyn", "afin")
        kind = known and not (flags.asyn and flags.afin) and (flags.asyn and "ASYNACK" or flags.afin and "AFINACK" or "MACK")
    elseif flags.nack then
        kind = only(flags, "nack", "urg") and "NACK"
    elseif flags.rst then
        kind = only(flags, "rst") and "RST" or only(flags, "rst", "asyn") and "CHALLENGE" or only(flags, "rst", "afin") and "RESPONSE"
    elseif flags.afin then
        kind = only(flags, "afin") and "AFIN"
    elseif flags.asyn and body_bytes == 0 and only(flags, "asyn") then
        kind = "ASYN"
    else
        kind = only(flags, "urg", "psh", "asyn") and "data"
    end
    if not kind or (mode == 0 and (kind ~= "data" or flags.asyn)) then
        return nil, "contradictory flags"
    end
    local fits
    if kind == "data" then
        fits = body_bytes > 0 or mode == 0
    elseif kind == "repair" then
        fits = body_bytes > 0
    elseif flags.mack or flags.nack then
        local least = flags.cumulative and 4 + (flags.urg and 4 or 0) + (flags.psh and 8 or 0) or 0
        fits = body_bytes % 4 == 0 and body_bytes >= least and body_bytes <= NUMBERS_BYTES_MAX
    else
        fits = body_bytes == 0
    end
    if not fits then
        return nil, string.format("a body of %d octets in %s", body_bytes, kind)
    end
    return kind
end

-- Whether `octets` begin with a header whose HEC is right, under a mode that is known.
local function is_header(shared, octets)
    if #octets < HEADER_BYTES then
        return false
    end
    local small = octets:byte(13) * 256 + octets:byte(14)
    local flags = flags_of(small)
    local length = (flags.fec and DESCRIPTOR_BYTES or 0) + (flags.block and DESCRIPTOR_BYTES or 0)
    local sent = octets:byte(15) * 256 + octets:byte(16)
    return MODES[bit.rshift(small, 12)] ~= nil and #octets >= HEADER_BYTES + length
        and shared.sums.hec(octets:sub(1, 14) .. octets:sub(17, 16 + length)) == sent
end

local function numbers(cursor)
    local count = 0
    while cursor:left() >= 4 do
        cursor:number(f.number, 4)
        count = count + 1
    end
    return count > 0 and " +" .. count or ""
end

-- What a cumulative MACK says besides numbers: of the receiver, of the channel (URG) and of the path (PSH).
local function receiver_words(cursor, flags)
    local window, hold = cursor:number(f["mack.window"], 2), nil
    local item, range = cursor:add(f["mack.hold"], 2)
    if item then
        hold = range:uint()
        item:append_text(hold == 65535 and " (1.048 s or more)" or string.format(" (%d us)", hold * 16))
    end
    local text = string.format(" win=%d", window or 0)
    if flags.urg then
        for _, name in ipairs { "mack.recent", "mack.lasting" } do
            local rate_item, rate = cursor:add(f[name], 2)
            if rate_item then
                rate_item:append_text(string.format(" (%.3g)", 2 ^ (-rate:uint() / 1024)))
                text = text .. string.format(" %s=%.1g", name:sub(6), 2 ^ (-rate:uint() / 1024))
            end
        end
    end
    if flags.psh then
        local arrived = cursor:number(f["mack.arrived"], 4)
        cursor:number(f["mack.clock"], 4)
        text = text .. string.format(" arrived=%d", arrived or 0)
    end
    return text
end

-- The body of a MACK or NACK; gives what the info column says of it.
local function feedback(cursor, flags)
    return (flags.cumulative and receiver_words(cursor, flags) or "") .. numbers(cursor)
end

-- What the ports' applications say, in modes with a stream and in the others.
local function applications(shared)
    local Streams = shared.Streams
    local splice = { name = "Splice", stream = Streams.new(shared.splice_length), record = shared.splice_record,
        message = "fulmar.splice" }
    local messages = { name = "Perf", stream = Streams.new(shared.perf_data_length), record = shared.perf_message,
        message = "fulmar.perf_data" }
    local of_ports = {
        [4914] = { name = "Transfer", stream = Streams.new(shared.transfer_length), record = shared.transfer_record,
            message = "fulmar.transfer_message" },
        [4915] = { name = "Perf", stream = Streams.new(shared.perf_length), record = shared.perf_record },
        [7070] = splice, [7071] = splice, [7072] = splice, [7073] = splice,
    }
    -- A port for each stream of a test.
    for stream = 0, 127 do
        of_ports[5120 + stream] = messages
    end
    return of_ports
end

-- Shows the records that a TPDU of a stream completed.
local function stream(application, pinfo, item, tree, body, head)
    local key = string.format("%s %s:%d>%s:%d", tostring(interface_id()), tostring(pinfo.src), head.source, tostring(pinfo.dst),
        head.destination)
    local found = application.stream:records(pinfo, key, head.seq, body:raw(), head.asyn, head.is_cut)
    if found.lost then
        item:append_text(" (the stream before it was not captured)")
    end
    if #found > 0 then
        item:add(f.records, body, #found):set_generated()
    end
    if found.partial and found.partial > 0 then
        item:add(f.partial, body, found.partial):set_generated()
    end
    local texts = {}
    for at, record in ipairs(found) do
        local tvb = record.at and body:range(record.at, #record.octets):tvb()
            or ByteArray.new(record.octets, true):tvb(application.name .. " record")
        texts[at] = application.record(tvb, tree)
    end
    return #texts > 0 and " {" .. table.concat(texts, ", ") .. "}" or ""
end

-- What the ports' application says in a data TPDU, for the info column. A message is left in `head` for it to be called with.
local function carried(known, pinfo, tree, item, body, head)
    local application = known[head.destination] or known[head.source]
    if not application then
        return ""
    end
    pinfo.cols.protocol = "AeroTP/" .. application.name
    if STREAM_MODES[head.mode] then
        return stream(application, pinfo, item, tree, body, head)
    elseif application.message then
        head.message = { application.message, body:tvb() }
    end
    return ""
end

-- Number, cause and flags of a TPDU, for the info column.
local function told(head)
    local set = {}
    for _, name in ipairs { "asyn", "psh", "urg" } do
        set[#set + 1] = head.kind == "data" and head.flags[name] and name:upper() or nil
    end
    local reason = head.kind == "NACK" and (head.flags.urg and " damaged" or " missing") or ""
    local ecn = (head.flags.echo and " ECHO" or "") .. (head.flags.reduced and " REDUCED" or "")
    return string.format(" %s%s%s%s%s", head.kind or "?", head.seq and " seq=" .. head.seq or "", reason,
        #set > 0 and " [" .. table.concat(set, " ") .. "]" or "", ecn)
end

-- Everything behind the header and its descriptors; gives what the info column says of it.
local function content(shared, known, pinfo, tree, item, cursor, head)
    local flags = head.flags
    local body_stop = cursor.stop - head.parity_bytes - (flags.crc and CRC_BYTES or 0)
    if body_stop < cursor.at then
        cursor:fail("truncated", "shorter than its CRC-32 and parity")
        return " [too short]"
    end
    local kind, reason = kind_of(flags, head.mode, body_stop - cursor.at)
    local from = cursor.at
    local inner = shared.Cursor.new(cursor.tvb, item, shared.experts, body_stop)
    inner.at = from
    local text, body = "", nil
    if not kind then
        inner:fail("malformed", reason)
        text = " [" .. reason .. "]"
        inner:rest(f.payload)
    elseif flags.mack or flags.nack then
        text = feedback(inner, flags)
    elseif body_stop > from then
        body = inner:rest(kind == "repair" and f.symbol or f.payload)
        text = " len=" .. body_stop - from
    end
    cursor.at = body_stop
    local intact = true
    if flags.crc then
        intact = cursor:check(f.crc, f["crc.status"], cursor:range(CRC_BYTES), shared.sums.crc32(cursor:raw(0, body_stop)),
            "payload_check")
        text = intact and text or text .. " [damaged]"
    end
    cursor:rest(f.parity)
    head.kind = kind
    if kind then
        item:add(f.kind, cursor.tvb:range(0, HEADER_BYTES), kind):set_generated()
    end
    local is_data = kind == "data" and intact and body
    return is_data and text .. carried(known, pinfo, tree, item, body, head) or text
end

local function words(item, cursor, flags)
    local parity_bytes = 0
    if flags.fec then
        local code = cursor:number(f["fec.code"], 1)
        local _, range = cursor:add(f["fec.words"], 3)
        if range then
            local count = range:uint()
            parity_bytes = 4 * (count % 512)
            if not flags.crc or code ~= 1 or count < 1 or count > 256 then
                cursor:fail("malformed", "unusable FEC descriptor")
            end
        end
    end
    if flags.block then
        cursor:number(f["block.code"], 1)
        local range = cursor:range(1)
        if range then
            item:add(f["block.sources"], range, range:uint() + 1)
        end
        cursor:number(f["block.repair"], 1)
        local reserved = cursor:range(1)
        if reserved and reserved:uint() ~= 0 then
            cursor:fail("malformed", "unusable block descriptor")
        end
    end
    return parity_bytes
end

local function dissect(shared, known, tvb, pinfo, tree)
    pinfo.cols.protocol = "AeroTP"
    local item = tree:add(proto, tvb:range())
    local cursor = shared.Cursor.new(tvb, item, shared.experts)
    local head = { source = cursor:number(f.srcport, 2), destination = cursor:number(f.dstport, 2), seq = cursor:number(f.seq, 4) }
    local time = cursor:range(4)
    local range = cursor:range(2)
    local hec = cursor:range(2)
    if not hec then
        return shared.info(pinfo, "too short for a header")
    end
    local small = range:uint()
    local flags = flags_of(small)
    head.mode, head.flags, head.asyn = bit.rshift(small, 12), flags, flags.asyn
    item:add((flags.mack or flags.nack) and f.echoed or f.timestamp, time)
    item:add(f.mode, range)
    for at = #FLAGS, 1, -1 do
        item:add(f["flags." .. FLAGS[at]], range)
    end
    local described = HEADER_BYTES + (flags.fec and DESCRIPTOR_BYTES or 0) + (flags.block and DESCRIPTOR_BYTES or 0)
    local computed = described <= cursor.stop and shared.sums.hec(cursor:raw(0, 14) .. cursor:raw(16, described)) or nil
    local is_sound = cursor:check(f.hec, f["hec.status"], hec, computed, "header_check")
    local text = string.format("%d → %d %s", head.source, head.destination, MODES[head.mode] or "mode " .. head.mode)
    if not is_sound then
        cursor:rest(f.payload)
        return shared.info(pinfo, text .. " [header check failed]")
    end
    if not MODES[head.mode] then
        cursor:fail("unknown", "a reserved mode")
        return shared.info(pinfo, text .. " [reserved mode]")
    end
    head.parity_bytes = words(item, cursor, flags)
    if cursor.failed then
        return shared.info(pinfo, text .. " [" .. cursor.failed .. "]")
    end
    shared.names:note(pinfo, head.source, head.destination, head.mode)
    local said = content(shared, known, pinfo, tree, item, cursor, head)
    text = text .. told(head) .. said
    item:append_text(", " .. (head.kind or "?") .. " " .. head.seq)
    shared.info(pinfo, text)
    if head.message then
        shared.call(head.message[1], head.message[2], pinfo, tree)
    end
end

local aerotp = {}

function aerotp.register(shared)
    declare(shared)
    local known = applications(shared)
    function proto.init()
        for _, application in pairs(known) do
            application.stream:reset()
        end
    end
    shared.read(proto, function(_, tvb, pinfo, tree)
        dissect(shared, known, tvb, pinfo, tree)
    end)
    -- For the short form.
    shared.aerotp = { proto = proto, fields = f, receiver_words = receiver_words, told = told }
    function shared.aerotp.carried(...)
        return carried(known, ...)
    end
    -- Fields that are bits of two octets here, and said elsewhere in a frame.
    function shared.aerotp.flag(item, name, range, is_set)
        for at, one in ipairs(FLAGS) do
            if one == name then
                item:add(f["flags." .. name], range, is_set and 2 ^ (at - 1) or 0)
            end
        end
    end
    function shared.aerotp.mode(item, range, mode)
        return item:add(f.mode, range, mode * 4096)
    end
    function shared.is_tpdu(octets)
        return is_header(shared, octets)
    end
    -- The simulator's packets: protocol 253 (RFC 3692) below IPv4's shape.
    DissectorTable.get("ip.proto"):add(253, proto)
end

return aerotp
