-- What is noteworthy of any format, as expert information that one filter finds in all of them.

return function()
    local proto = Proto("fulmar", "Fulmar")
    local check = expert.group.CHECKSUM
    local experts = {
        header_check = ProtoExpert.new("fulmar.header_check_failed", "Header check failed", check, expert.severity.ERROR),
        payload_check = ProtoExpert.new("fulmar.payload_check_failed", "Payload check failed", check, expert.severity.WARN),
        truncated = ProtoExpert.new("fulmar.truncated", "Too short", expert.group.MALFORMED, expert.severity.ERROR),
        malformed = ProtoExpert.new("fulmar.malformed", "Not as specified", expert.group.MALFORMED, expert.severity.ERROR),
        unknown = ProtoExpert.new("fulmar.unknown", "Not known to this dissector", expert.group.UNDECODED, expert.severity.WARN),
        version = ProtoExpert.new("fulmar.unknown_version", "Another version", expert.group.UNDECODED, expert.severity.WARN),
    }
    proto.experts = {
        experts.header_check, experts.payload_check, experts.truncated, experts.malformed, experts.unknown, experts.version,
    }
    experts.proto = proto
    return experts
end
