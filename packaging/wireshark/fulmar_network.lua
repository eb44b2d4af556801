-- The lab's network header, in IPv4's shape: crates/proto/src/wire/network.rs. What is sound goes on to Wireshark's own IP, which
-- shows the fields again under their common names and finds TCP, UDP, AeroTP (253) and LT-TCP (254).

local PROTOCOLS = { [6] = "TCP", [17] = "UDP", [253] = "AeroTP", [254] = "LT-TCP" }
local ECN = { [0] = "not capable", "capable", "capable", "congestion experienced" }
local HEADER_BYTES = 20

local proto = nil
local f = {}

local function declare(shared)
    local field
    proto, field = shared.declare("fulmar.network", "Fulmar lab network", f)
    field("shape", "uint8", "Version and length", base.HEX)
    field("priority", "uint8", "Priority (DSCP)", base.DEC, nil, 0xFC)
    field("ecn", "uint8", "ECN", base.DEC, ECN, 0x03)
    field("length", "uint16", "Total length")
    field("zero", "uint32", "Zero", base.HEX)
    field("hops_left", "uint8", "Hops left")
    field("protocol", "uint8", "Protocol", base.DEC, PROTOCOLS)
    field("checksum", "uint16", "Checksum", base.HEX)
    field("checksum.status", "uint8", "Checksum status", base.DEC, shared.Cursor.STATUS)
    field("source", "uint32", "Source node")
    field("destination", "uint32", "Destination node")
    field("payload", "bytes", "Payload, whose header cannot be believed")
    proto.fields = f
end

local function dissect(shared, tvb, pinfo, tree)
    pinfo.cols.protocol = "Lab"
    local item = tree:add(proto, tvb:range(0, math.min(HEADER_BYTES, tvb:len())))
    local cursor = shared.Cursor.new(tvb, item, shared.experts)
    local shape = cursor:number(f.shape, 1)
    local class = cursor:range(1)
    if class then
        item:add(f.priority, class)
        item:add(f.ecn, class)
    end
    local length, zero = cursor:number(f.length, 2), cursor:number(f.zero, 4)
    cursor:number(f.hops_left, 1)
    local protocol, checksum = cursor:number(f.protocol, 1), cursor:range(2)
    local source, destination = cursor:number(f.source, 4), cursor:number(f.destination, 4)
    if not destination then
        return shared.info(pinfo, "too short for a network header")
    end
    local computed = shared.sums.internet(cursor:raw(0, 10) .. "\0\0" .. cursor:raw(12, HEADER_BYTES))
    local is_sound = cursor:check(f.checksum, f["checksum.status"], checksum, computed, "header_check")
    local text = string.format("%d → %d", source, destination)
    item:append_text(", " .. text)
    if not is_sound then
        text = text .. " [header check failed]"
    elseif shape ~= 0x45 or zero ~= 0 or length < HEADER_BYTES then
        cursor:fail("malformed", "not a network header of the lab")
    elseif length > tvb:len() then
        cursor:fail("truncated", string.format("%d octets of %d", tvb:len(), length))
    else
        if not PROTOCOLS[protocol] then
            cursor:fail("unknown", "protocol " .. protocol)
        end
        shared.call("ip", tvb, pinfo, tree)
        return
    end
    cursor:rest(f.payload)
    shared.info(pinfo, text .. (cursor.failed and " [" .. cursor.failed .. "]" or ""))
end

local network = {}

function network.register(shared)
    declare(shared)
    shared.read(proto, dissect)
end

return network
