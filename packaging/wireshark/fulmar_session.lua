-- Session datagrams, as they are on the wire: docs/protocol/session.md.

local TYPES = { [0] = "data", "initiation", "response", "cookie", "early", "version", "notice" }
local NOTICES = { "wrong key", "unknown caller", "other security", "superseded", "no session" }
local VERSION = 1
local HEADER_BYTES, KEY_BYTES, TAG_BYTES, CRC_BYTES, HELLO_BYTES, CHECK_BYTES = 12, 32, 16, 4, 256, 16
-- By the length of header, body and both checks, which says the kind of security.
local INITIATIONS = { [396] = "Noise", [348] = "Preset", [304] = "None" }
local RESPONSES = { [316] = "Noise or Preset", [272] = "None" }

local proto = nil
local f = {}

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
    field("counter", "uint32", "Counter, low half")
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

-- A sealed message. Without security it is in clear, which its CRC-32 tells, as long as the counter has 32 bits.
local function data(shared, cursor, item, counter, range)
    item:add(f.counter, range)
    local text, length = " counter=" .. counter, cursor:left()
    local clear = nil
    if length > CRC_BYTES then
        local plain = cursor:raw(cursor.at, cursor.stop - CRC_BYTES)
        local mixed = shared.sums.crc32("\0\0\0\0" .. Struct.pack(">I4", counter))
        local sum = bit.bxor(shared.sums.crc32(plain), mixed) % 4294967296
        local tail = cursor.tvb:range(cursor.stop - CRC_BYTES, CRC_BYTES)
        if sum == tail:uint() then
            clear = item:add(f.content, cursor:range(length - CRC_BYTES)) and cursor.tvb:range(HEADER_BYTES, length - CRC_BYTES)
            item:add(f.crc, cursor:range(CRC_BYTES))
            item:add(f["crc.status"], tail, 1):set_generated()
        end
    end
    if clear then
        return text .. " in clear", clear
    end
    if length < CRC_BYTES + 1 then
        cursor:fail("truncated", "no room for a message and its check")
        return text
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
    return text .. " sealed len=" .. length
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

-- Whether `octets` begin with a header of ours whose HEC is right.
local function is_header(shared, octets)
    if #octets < HEADER_BYTES then
        return false
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

local function dissect(shared, tvb, pinfo, tree)
    pinfo.cols.protocol = "Session"
    local item = tree:add(proto, tvb:range())
    local cursor = shared.Cursor.new(tvb, item, shared.experts)
    local first = cursor:range(1)
    local head = { fec_words = cursor:number(f.fec_words, 1) }
    local hec = cursor:range(2)
    head.receiver = cursor:number(f.receiver, 4)
    local word = cursor:range(4)
    if not word then
        return shared.info(pinfo, "too short for a header")
    end
    item:add(f.version, first)
    item:add(f.type, first)
    head.version, head.kind = math.floor(first:uint() / 16), first:uint() % 16
    local is_sound = cursor:check(f.hec, f["hec.status"], hec, shared.sums.hec(cursor:raw(0, 2) .. cursor:raw(4, HEADER_BYTES)),
        "header_check")
    local text, clear = "[header check failed]", nil
    if is_sound then
        text, clear = content(shared, tvb, item, cursor, head, word)
        text = text .. (cursor.failed and " [" .. cursor.failed .. "]" or "")
    else
        cursor:rest(f.unknown)
    end
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
    function shared.is_session(octets)
        return is_header(shared, octets)
    end
end

return session
