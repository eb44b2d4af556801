-- Wireshark dissectors for Fulmar's wire formats: the specifications are docs/protocol, the user's view docs/guide/wireshark.md.
--
-- The files of this folder go together into a folder for Lua plugins. The others are one format each, or what several share, and do
-- nothing but return their parts: Wireshark also runs them by themselves. It knows plugins by their bare names, hence the prefix.

-- Another copy was loaded before, of the package perhaps: a name can be registered only once.
local _, other = pcall(Dissector.get, "fulmar.aerotp")
if type(other) == "userdata" then
    return
end

-- Where this file is: Wireshark 4.0 sets `__DIR__` for a user's own plugins only.
local folder = debug.getinfo(1, "S").source:match("^@?(.-)[^/\\]*$")

local function load(name)
    return dofile(folder .. "fulmar_" .. name .. ".lua")
end

-- What the formats share; a format adds what others call.
local shared = {
    sums = load("sums"),
    Cursor = load("cursor"),
    Streams = load("streams"),
    frames = load("frames"),
    names = load("names").new(),
    experts = load("experts")(),
    -- AeroTP's modes, by the code that several formats carry.
    modes = {
        [0] = "datagram", "unreliable", "quasi-reliable", "near-reliable", "reliable", "nack", "nack-mack",
    },
}

-- A format's protocol, and what declares a field below its name, in `fields`; the format sets `proto.fields` when it has all.
function shared.declare(name, title, fields)
    return Proto(name, title), function(field, kind, ...)
        fields[field] = ProtoField[kind](name .. "." .. field, ...)
    end
end

-- Lets `dissect` read a protocol's packets, each of which is its own to the last octet.
function shared.read(proto, dissect)
    function proto.dissector(tvb, pinfo, tree)
        dissect(shared, tvb, pinfo, tree)
        return tvb:len()
    end
end

-- Says in the info column what a layer has, behind what those around it have.
function shared.info(pinfo, text)
    if pinfo.private.fulmar then
        pinfo.cols.info:append(" | " .. text)
    else
        pinfo.cols.info = text
        pinfo.private.fulmar = "said"
    end
    pinfo.cols.info:fence()
end

-- Hands octets on to another dissector. What that finds malformed it has said in the tree; to us it is an error of the call.
function shared.call(name, tvb, pinfo, tree)
    pcall(Dissector.call, Dissector.get(name), tvb, pinfo, tree)
end

for _, name in ipairs {
    "splice", "transfer", "perf", "aerotp", "short", "lt_tcp", "network", "link", "slacp", "inner", "session", "one_way", "datagram",
} do
    load(name).register(shared)
end
