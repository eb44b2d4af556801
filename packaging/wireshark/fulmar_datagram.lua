-- UDP payloads of Fulmar: a session's datagrams or TPDUs, told apart by their header checks. Wireshark asks for those of the ports
-- that the preference names, and for those that no other dissector takes. A session's data in wire 2 has no such check: it is known by
-- what passed between its ports before, by an index from a handshake, or by the preference.

local PORTS = "4914-4917"
-- Longer than what any header check covers.
local HEAD_BYTES = 24

local proto = nil
local fields = nil
-- What was recognised before between two ports: damaged datagrams are shown as the same.
local conversations = {}
local found = {}

local function key_of(pinfo)
    local from = tostring(pinfo.src) .. " " .. pinfo.src_port
    local to = tostring(pinfo.dst) .. " " .. pinfo.dst_port
    return from < to and from .. " " .. to or to .. " " .. from
end

local function format_of(shared, tvb, pinfo)
    local octets = tvb:raw(0, math.min(tvb:len(), HEAD_BYTES))
    if shared.is_session(octets) then
        return "fulmar.session"
    elseif shared.is_plain_data(tvb) and conversations[key_of(pinfo)] == "fulmar.session" or shared.is_known_data(tvb) then
        return "fulmar.session"
    elseif shared.is_tpdu(octets) then
        return "fulmar.aerotp"
    end
end

local function dissect(shared, tvb, pinfo, tree)
    local key = key_of(pinfo)
    local format = format_of(shared, tvb, pinfo)
    conversations[key] = conversations[key] or format
    if not found[pinfo.number] then
        local is_likely = shared.is_plain_data(tvb) and "fulmar.session" or nil
        found[pinfo.number] = { format = format or conversations[key] or is_likely }
    end
    format = format or found[pinfo.number].format
    -- A one-way datagram has no check that others could know: one of Fulmar's ports that begins like one, and like nothing else.
    if not format and shared.is_one_way(tvb) then
        format = "fulmar.one_way"
    end
    if format then
        return shared.call(format, tvb, pinfo, tree)
    end
    pinfo.cols.protocol = "Fulmar"
    local item = tree:add(proto, tvb:range())
    if tvb:len() > 0 then
        item:add(fields.octets, tvb:range())
    end
    item:add_proto_expert_info(shared.experts.header_check, "Neither a session's header check is right nor a TPDU's")
    shared.info(pinfo, "neither a session's datagram nor a TPDU, or damaged")
end

local datagram = {}

function datagram.register(shared)
    proto = Proto("fulmar.datagram", "Fulmar datagram")
    fields = { octets = ProtoField.bytes("fulmar.datagram.octets", "Octets") }
    proto.fields = fields
    local preferences = shared.experts.proto.prefs
    preferences.ports = Pref.range("UDP ports", PORTS, "UDP ports of gateways, file transfers and fulmar perf", 65535)
    function proto.init()
        conversations, found = {}, {}
    end
    function proto.dissector(tvb, pinfo, tree)
        dissect(shared, tvb, pinfo, tree)
        return tvb:len()
    end
    proto:register_heuristic("udp", function(tvb, pinfo, tree)
        if not format_of(shared, tvb, pinfo) then
            return false
        end
        dissect(shared, tvb, pinfo, tree)
        return true
    end)
    local ports = DissectorTable.get("udp.port")
    local registered = PORTS
    ports:add(registered, proto)
    function shared.experts.proto.prefs_changed()
        if preferences.ports ~= registered then
            ports:remove(registered, proto)
            registered = preferences.ports
            ports:add(registered, proto)
        end
    end
end

return datagram
