-- Files over links without a way back: docs/protocol/one-way.md. The content is sealed.

local FORMS = { [0x71] = "symbol", [0x72] = "announcement", [0x73] = "request" }
local HEADER_BYTES = 15
local TAG_BYTES = 16

local proto = nil
local f = {}

local function declare(shared)
    local field
    proto, field = shared.declare("fulmar.one_way", "Fulmar one-way datagram", f)
    field("form", "uint8", "Form", base.DEC, FORMS)
    field("sender", "uint32", "Sender")
    field("start", "uint32", "Start of the sender")
    field("counter", "uint64", "Counter")
    field("sealed", "bytes", "Sealed content")
    field("tag", "bytes", "Tag")
    proto.fields = f
end

local function dissect(shared, tvb, pinfo, tree)
    pinfo.cols.protocol = "One-way"
    local item = tree:add(proto, tvb:range())
    local cursor = shared.Cursor.new(tvb, item, shared.experts)
    local form = cursor:number(f.form, 1)
    if form and not FORMS[form] then
        cursor:fail("unknown", string.format("form %d", form))
    end
    local sender = cursor:number(f.sender, 4)
    cursor:number(f.start, 4)
    local range = cursor:range(6, "the counter")
    if not range then
        return shared.info(pinfo, "cut off")
    end
    item:add(f.counter, range, range:uint64())
    if cursor:left() < TAG_BYTES then
        cursor:fail("truncated", string.format("the tag needs %d octets, %d are left", TAG_BYTES, cursor:left()))
    end
    if cursor:left() > TAG_BYTES then
        cursor:add(f.sealed, cursor:left() - TAG_BYTES)
    end
    cursor:add(f.tag, TAG_BYTES)
    local text = string.format("%s of %08x, counter %s", FORMS[form] or "form " .. tostring(form), sender, tostring(range:uint64()))
    shared.info(pinfo, text)
end

local one_way = {}

function one_way.register(shared)
    declare(shared)
    -- Whether octets begin as such a datagram may. Nothing but the key proves it: ask for the other formats before.
    function shared.is_one_way(tvb)
        return tvb:len() >= HEADER_BYTES + TAG_BYTES and FORMS[tvb:range(0, 1):uint()] ~= nil
    end
    shared.read(proto, dissect)
end

return one_way
