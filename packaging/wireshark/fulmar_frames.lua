-- The frames in a session's content: docs/protocol/aerotp.md, section 11.1. A message in wire 1 is one frame, the last.

-- The bit of a type that says that another frame follows, and the first type that cannot have it.
local MORE, DATA_FIRST = 0x80, 0x40

local frames = { MAX = 16 }

-- Reads a frame's type, and its length if another follows: the cursor then stops where the frame does. Gives the type, its
-- range, and the range of the length or nil.
function frames.begin(cursor)
    local range = cursor:range(1, "a frame's type")
    if not range then
        return nil
    end
    local octet, from = range:uint(), cursor.at
    if octet < MORE or octet >= MORE + DATA_FIRST then
        return octet, range
    end
    local length = cursor:varint("a frame's length")
    if length and length > cursor:left() then
        cursor:fail("truncated", string.format("a frame of %.0f octets, %d are left", length, cursor:left()))
    elseif length then
        cursor.stop = cursor.at + length
    end
    return octet - MORE, range, cursor.tvb:range(from, cursor.at - from)
end

return frames
