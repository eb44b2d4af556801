-- Session datagrams, as they are on the wire: docs/protocol/session.md.

local TYPES = { [0] = "data", "initiation", "response", "cookie", "early", "version", "notice" }
local NOTICES = { "wrong key", "unknown caller", "other security", "superseded", "no session" }
local VERSION = 1
-- Data in wire 2, by the upper five bits of the first octet.
local PLAIN, ARMOURED = 5, 7
local PLAIN_BYTES, ARMOURED_BYTES, ARMOUR_BYTES = 8, 9, 8
local HEADER_BYTES, KEY_BYTES, TAG_BYTES, CRC_BYTES, HELLO_BYTES, CHECK_BYTES = 12, 32, 16, 4, 256, 16
-- By the length of header, body and both checks, which says the kind of security.
local INITIATIONS = { [396] = "Noise", [348] = "Preset", [304] = "None" }
local RESPONSES = { [316] = "Noise or Preset", [272] = "None" }

local proto = nil
local f = {}
-- Indices that ends have chosen in the handshakes of this capture, and are called by since.
local indices = {}

local function declare(shared)
    local field
    proto, field = shared.declare("fulmar.session", "Fulmar session", f)
    field("version", "uint8", "Version", base.DEC, nil, 0xF0)
    field("type", "uint8", "Type", base.DEC, TYPES, 0x0F)
    field("fec_words", "uint8", "FEC words")
    field("hec", "uint16", "HEC", base.HEX)
    field("hec.status", "uint8", "HEC status", base.DEC, shared.Cursor.STATUS)
    field("receiver", "uint32", "Receiver's index", base.HEX)
    field("sender", "uint32", "Sender's index", base.HEX)
    field("armoured", "bool", "Armoured", 8, nil, 0x10)
    field("place", "uint8", "Place of the path", base.DEC, nil, 0x07)
    field("counter", "uint32", "Counter (in wire 1 its low half)")
    field("armour", "bytes", "Parity of the header")
    field("armour.status", "uint8", "Parity of the header, status", base.DEC, shared.Cursor.STATUS)
    field("zero", "uint32", "Zero", base.HEX)
    field("security", "string", "Security")
    field("ephemeral", "bytes", "Ephemeral public key")
    field("sealed_key", "bytes", "Static public key, sealed")
    field("sealed_hello", "bytes", "Hello, sealed")
    field("hello.version", "uint8", "Hello: version")
    field("hello.count", "uint8", "Capabilities")
    field("hello.boot", "uint64", "Boot", base.HEX)
    field("hello.epoch", "uint64", "Epoch")
    field("hello.must_agree", "bool", "Must agree", 8, nil, 1)
    field("hello.name", "string", "Capability")
    field("hello.value", "string", "Value")
    field("hello.padding", "bytes", "Padding")
    field("crc", "uint32", "CRC-32", base.HEX)
    field("crc.status", "uint8", "CRC-32 status", base.DEC, shared.Cursor.STATUS)
    field("first_check", "bytes", "First check")
    field("second_check", "bytes", "Second check")
    field("nonce", "bytes", "Nonce")
    field("cookie", "bytes", "Cookie, wrapped")
    field("tag", "bytes", "Tag")
    field("salt", "bytes", "Salt")
    field("sealed", "bytes", "Message, sealed")
    field("content", "bytes", "Message, in clear")
    field("notice", "uint8", "Notice", base.DEC, NOTICES)
    field("kinds.noise", "bool", "Noise is taken", 8, nil, 1)
    field("kinds.preset", "bool", "Preset is taken", 8, nil, 2)
    field("kinds.none", "bool", "None is taken", 8, nil, 4)
    field("seen", "bytes", "Of the datagram that is answered")
    field("parity", "bytes", "Parity")
    field("unknown", "bytes", "Octets of another version or type")
    proto.fields = f
end

local function hello(cursor)
    local stop, outer = cursor.at + HELLO_BYTES, cursor.stop
    if cursor:left() < HELLO_BYTES then
        cursor:fail("truncated", "no room for a hello")
        return
    end
    cursor.stop = stop
    local version = cursor:number(f["hello.version"], 1)
    local count = cursor:number(f["hello.count"], 1)
    cursor:number64(f["hello.boot"])
    cursor:number64(f["hello.epoch"])
    if version ~= VERSION then
        cursor:fail("version", "a hello of version " .. version)
        count = 0
    end
    for _ = 1, count do
        if not cursor:add(f["hello.must_agree"], 1, "a capability") then
            break
        end
        for _, name in ipairs { "hello.name", "hello.value" } do
            local length = cursor:range(1, "a text's length")
            cursor:text(f[name], length and length:uint() or 0)
        end
    end
    if not cursor.failed then
        cursor:rest(f["hello.padding"])
    end
    cursor.at, cursor.stop = stop, outer
end

-- The body of a handshake's message without security: a hello and its CRC-32.
local function clear_hello(shared, cursor)
    local from = cursor.at
    hello(cursor)
    local range = cursor.stop - from >= HELLO_BYTES + CRC_BYTES and cursor.tvb:range(from + HELLO_BYTES, CRC_BYTES)
    if range then
        cursor.at = from + HELLO_BYTES + CRC_BYTES
        cursor:check(f.crc, f["crc.status"], range, shared.sums.crc32(cursor:raw(from, from + HELLO_BYTES)), "payload_check")
    end
end

local function handshake(shared, cursor, item, kinds, first_word, range)
    item:add(f.sender, range)
    indices[first_word] = true
    local security = kinds[cursor.stop]
    if not security then
        cursor:fail("malformed", string.format("no handshake has %d octets", cursor.stop))
        cursor:rest(f.unknown)
        return string.format(" from %08x", first_word)
    end
    item:add(f.security, cursor.tvb:range(0, 1), security):set_generated()
    if security == "None" then
        clear_hello(shared, cursor)
    else
        cursor:add(f.ephemeral, KEY_BYTES)
        if security == "Noise" then
            cursor:add(f.sealed_key, KEY_BYTES + TAG_BYTES)
        end
        cursor:add(f.sealed_hello, HELLO_BYTES + TAG_BYTES)
    end
    if kinds == INITIATIONS and not cursor.failed then
        cursor:add(f.first_check, CHECK_BYTES)
        cursor:add(f.second_check, CHECK_BYTES)
    end
    return string.format(" from %08x, security %s", first_word, security)
end

-- Whether the octets from `from` to `stop` are content in clear and its CRC-32 under a number, which is eight octets.
local function is_clear(shared, tvb, from, stop, number)
    if stop - from <= CRC_BYTES then
        return false
    end
    local sums, plain = shared.sums, tvb:raw(from, stop - CRC_BYTES - from)
    local sum = bit.bxor(sums.crc32(plain), sums.crc32(number)) % 4294967296
    return sum == tvb:range(stop - CRC_BYTES, CRC_BYTES):uint()
end

-- A sealed message. Without security it is in clear, which its CRC-32 tells, if the whole number is known.
local function sealed(shared, cursor, item, number)
    local length = cursor:left()
    if length <= CRC_BYTES then
        cursor:fail("truncated", "no room for a message and its check")
        return ""
    end
    if is_clear(shared, cursor.tvb, cursor.at, cursor.stop, number) then
        local clear = cursor:range(length - CRC_BYTES)
        item:add(f.content, clear)
        local tail = cursor:range(CRC_BYTES)
        item:add(f.crc, tail)
        item:add(f["crc.status"], tail, 1):set_generated()
        return " in clear", clear
    end
    if length > TAG_BYTES then
        cursor:add(f.sealed, length - TAG_BYTES)
        cursor:add(f.tag, TAG_BYTES)
    else
        -- Too short to be sealed: in clear, and damaged.
        local content = cursor:range(length - CRC_BYTES)
        item:add(f.content, content)
        local crc = item:add(f.crc, cursor:range(CRC_BYTES))
        item:add(f["crc.status"], content, 0):set_generated()
        crc:add_proto_expert_info(shared.experts.payload_check)
    end
    return " sealed len=" .. length
end

-- Data in wire 1, whose counter is known as long as it has 32 bits.
local function data(shared, cursor, item, counter, range)
    item:add(f.counter, range)
    local text, clear = sealed(shared, cursor, item, "\0\0\0\0" .. range:raw())
    return " counter=" .. counter .. text, clear
end

local function form_of(octets)
    return math.floor((octets:byte(1) or 0) / 8)
end

-- Whether the header and its parity at the start of `octets` fit each other.
local function is_armour(shared, octets)
    return #octets >= ARMOURED_BYTES + ARMOUR_BYTES and form_of(octets) == ARMOURED
        and octets:sub(ARMOURED_BYTES + 1, ARMOURED_BYTES + ARMOUR_BYTES) == shared.sums.armour(octets:sub(1, ARMOURED_BYTES))
end

-- Eight octets for the number of data in wire 2.
local function number_of(first, counter)
    return string.char(first % 8) .. "\0\0\0\0" .. counter
end

-- The parity of an armoured header; gives whether it fits.
local function armour(shared, cursor, item)
    local range = cursor:range(ARMOUR_BYTES, "the parity of the header")
    if not range then
        return false
    end
    local is_good = is_armour(shared, cursor:raw(0, cursor.at))
    local shown = item:add(f.armour, range)
    item:add(f["armour.status"], range, is_good and 1 or 0):set_generated()
    if not is_good then
        shown:add_proto_expert_info(shared.experts.header_check, "Header check failed: the parity does not fit")
        cursor:rest(f.unknown)
    end
    return is_good
end

-- Data in wire 2; gives what the info column says of it, and content in clear.
local function data_two(shared, tvb, item, cursor)
    local first = cursor:range(1)
    local is_armoured = form_of(first:raw()) == ARMOURED
    item:add(f.version, first, 0x20)
    item:add(f.armoured, first)
    item:add(f.type, first, 0)
    item:add(f.place, first)
    local words = is_armoured and cursor:number(f.fec_words, 1) or 0
    local receiver = cursor:number(f.receiver, 4)
    local _, counter = cursor:add(f.counter, 3)
    if not counter then
        return "data in wire 2"
    end
    local text = string.format("%sdata to %08x counter=%d", is_armoured and "armoured " or "", receiver, counter:uint())
    local place = first:uint() % 8
    text = place > 0 and text .. " place=" .. place or text
    if is_armoured and not armour(shared, cursor, item) then
        return text .. (cursor.failed and "" or " [header check failed]")
    end
    if cursor:left() < 4 * words then
        cursor:fail("truncated", "no room for the parity")
        cursor.tree:add(f.unknown, tvb:range(cursor.at))
        return text
    end
    cursor.stop = cursor.stop - 4 * words
    local said, clear = sealed(shared, cursor, item, number_of(first:uint(), counter:raw()))
    if words > 0 then
        item:add(f.parity, tvb:range(tvb:len() - 4 * words))
    end
    return text .. said, clear
end

local BODIES = {
    data = data,
    initiation = function(shared, cursor, item, word, range)
        return handshake(shared, cursor, item, INITIATIONS, word, range)
    end,
    response = function(shared, cursor, item, word, range)
        return handshake(shared, cursor, item, RESPONSES, word, range)
    end,
    cookie = function(_, cursor, item, _, range)
        item:add(f.zero, range)
        cursor:add(f.nonce, 24)
        cursor:add(f.cookie, 16)
        cursor:add(f.tag, TAG_BYTES)
        return ""
    end,
    early = function(_, cursor, item, counter, range)
        item:add(f.counter, range)
        cursor:add(f.salt, 24)
        if not cursor.failed and cursor:left() > TAG_BYTES then
            cursor:add(f.sealed, cursor:left() - TAG_BYTES)
            cursor:add(f.tag, TAG_BYTES)
        else
            cursor:fail("truncated", "no room for a message and its tag")
        end
        return " counter=" .. counter
    end,
    version = function(_, _, item, _, range)
        item:add(f.zero, range)
        return ""
    end,
    notice = function(_, cursor, item, _, range)
        local what = range:range(0, 1)
        item:add(f.notice, what)
        for _, name in ipairs { "noise", "preset", "none" } do
            item:add(f["kinds." .. name], range:range(1, 1))
        end
        if not NOTICES[what:uint()] then
            cursor:fail("unknown", "a notice without a meaning")
        end
        cursor:add(f.seen, what:uint() == #NOTICES and 4 or CHECK_BYTES)
        return ": " .. (NOTICES[what:uint()] or what:uint())
    end,
}

-- Whether `octets` begin with a header of ours whose HEC, or parity of its own, is right.
local function is_header(shared, octets)
    if #octets < HEADER_BYTES then
        return false
    elseif is_armour(shared, octets) then
        return true
    end
    local first = octets:byte(1)
    local version, kind = math.floor(first / 16), first % 16
    local sent = octets:byte(3) * 256 + octets:byte(4)
    return TYPES[kind] ~= nil and (version == VERSION or TYPES[kind] == "version" or TYPES[kind] == "initiation")
        and shared.sums.hec(octets:sub(1, 2) .. octets:sub(5, HEADER_BYTES)) == sent
end

-- What follows a header that is sound; gives what the info column says of it, and content in clear.
local function content(shared, tvb, item, cursor, head, word)
    local name = TYPES[head.kind]
    if not name then
        cursor:fail("unknown", "a type without a meaning")
    elseif head.version == 0 and name == "initiation" and tvb:len() == HEADER_BYTES then
        item:add(f.sender, word)
        return "which version is spoken? asks " .. string.format("%08x", word:uint())
    elseif head.version ~= VERSION and name ~= "version" then
        cursor:fail("version", "version " .. head.version .. " of the session")
    end
    local parity_bytes = 4 * head.fec_words
    if cursor:left() < parity_bytes then
        cursor:fail("truncated", "no room for the parity")
    end
    if cursor.failed then
        cursor.tree:add(f.unknown, tvb:range(cursor.at))
        return name or "type " .. head.kind
    end
    cursor.stop = cursor.stop - parity_bytes
    local text, clear = BODIES[name](shared, cursor, item, word:uint(), word)
    if not cursor.failed and cursor:left() > 0 then
        cursor:fail("malformed", string.format("%d octets more than this has", cursor:left()))
    end
    if parity_bytes > 0 then
        item:add(f.parity, tvb:range(tvb:len() - parity_bytes, parity_bytes))
    end
    return string.format("%s to %08x%s", name, head.receiver, text), clear
end

-- Whether a datagram has the form of plain data in wire 2, whose header has no check.
local function is_plain(tvb)
    return tvb:len() > PLAIN_BYTES + CRC_BYTES and form_of(tvb:raw(0, 1)) == PLAIN
end

-- Whether plain data is ours: an index from a handshake, or content in clear whose CRC-32 is right.
local function is_ours(shared, tvb)
    local number = number_of(tvb:range(0, 1):uint(), tvb:raw(5, 3))
    return indices[tvb:range(1, 4):uint()] or is_clear(shared, tvb, PLAIN_BYTES, tvb:len(), number)
end

-- All but data in wire 2.
local function first_wire(shared, tvb, item, cursor)
    local first = cursor:range(1)
    local head = { fec_words = cursor:number(f.fec_words, 1) }
    local hec = cursor:range(2)
    head.receiver = cursor:number(f.receiver, 4)
    local word = cursor:range(4)
    if not word then
        return "too short for a header"
    end
    item:add(f.version, first)
    item:add(f.type, first)
    head.version, head.kind = math.floor(first:uint() / 16), first:uint() % 16
    local is_sound = cursor:check(f.hec, f["hec.status"], hec, shared.sums.hec(cursor:raw(0, 2) .. cursor:raw(4, HEADER_BYTES)),
        "header_check")
    if is_sound then
        return content(shared, tvb, item, cursor, head, word)
    end
    cursor:rest(f.unknown)
    return "[header check failed]"
end

local function dissect(shared, tvb, pinfo, tree)
    pinfo.cols.protocol = "Session"
    local item = tree:add(proto, tvb:range())
    local cursor = shared.Cursor.new(tvb, item, shared.experts)
    local form = form_of(tvb:len() > 0 and tvb:raw(0, 1) or "")
    local read = (form == PLAIN or form == ARMOURED) and data_two or first_wire
    local text, clear = read(shared, tvb, item, cursor)
    text = text .. (cursor.failed and " [" .. cursor.failed .. "]" or "")
    item:append_text(", " .. text)
    shared.info(pinfo, text)
    if clear then
        shared.call("fulmar.inner", clear:tvb(), pinfo, tree)
    end
end

local session = {}

function session.register(shared)
    declare(shared)
    shared.read(proto, dissect)
    function proto.init()
        indices = {}
    end
    function shared.is_session(octets)
        return is_header(shared, octets)
    end
    shared.is_plain_data = is_plain
    function shared.is_known_data(tvb)
        return is_plain(tvb) and is_ours(shared, tvb)
    end
end

return session
