-- The sums that packets are checked by: HEC (CRC-16/M17), CRC-32 (IEEE 802.3), the Internet checksum (RFC 1071).
-- Octets are Lua strings; results are numbers of 0 to 2^16 - 1 or 2^32 - 1.

local band, bor, bxor, lshift, rshift = bit.band, bit.bor, bit.bxor, bit.lshift, bit.rshift
local WORD = 4294967296

local sums = {}

local hec_table, crc_table, crc_by_top = {}, {}, {}
for octet = 0, 255 do
    local hec, crc = lshift(octet, 8), octet
    for _ = 1, 8 do
        hec = band(lshift(hec, 1), 0xFFFF) == lshift(hec, 1) and lshift(hec, 1) or band(bxor(lshift(hec, 1), 0x5935), 0xFFFF)
        crc = band(crc, 1) == 0 and rshift(crc, 1) or bxor(rshift(crc, 1), 0xEDB88320)
    end
    hec_table[octet], crc_table[octet] = hec, crc
    crc_by_top[rshift(crc, 24)] = octet
end

-- The header error check.
function sums.hec(octets)
    local sum = 0xFFFF
    for at = 1, #octets do
        sum = bxor(band(lshift(sum, 8), 0xFFFF), hec_table[bxor(rshift(sum, 8), octets:byte(at))])
    end
    return sum
end

function sums.crc32(octets)
    local sum = 0xFFFFFFFF
    for at = 1, #octets do
        sum = bxor(crc_table[band(bxor(sum, octets:byte(at)), 0xFF)], rshift(sum, 8))
    end
    return bxor(sum, 0xFFFFFFFF) % WORD
end

-- The 32-bit number whose four octets in front of `octets` make their CRC-32 `check`: there is exactly one, since every
-- step of a CRC can be taken back.
function sums.crc32_prefix(octets, check)
    local sum = bxor(check, 0xFFFFFFFF)
    local function back(octet)
        local index = crc_by_top[rshift(sum, 24)]
        sum = bor(lshift(bxor(sum, crc_table[index]), 8), bxor(index, octet))
    end
    for at = #octets, 1, -1 do
        back(octets:byte(at))
    end
    for _ = 1, 4 do
        back(0)
    end
    -- Four octets are taken in as a little-endian word over the initial value.
    return bit.bswap(bxor(sum, 0xFFFFFFFF)) % WORD
end

-- GF(256) modulo 0x11D: powers of alpha, and their exponents.
local exponential, logarithm = {}, {}
local power = 1
for at = 0, 254 do
    exponential[at], logarithm[power] = power, at
    power = power < 128 and 2 * power or bxor(2 * power, 0x11D)
end

local function product(a, b)
    return a > 0 and b > 0 and exponential[(logarithm[a] + logarithm[b]) % 255] or 0
end

-- The polynomial with the roots alpha to alpha^8, highest power first.
local ARMOUR_BYTES = 8
local generator = { [0] = 1 }
for root = 1, ARMOUR_BYTES do
    for term = root, 1, -1 do
        generator[term] = bxor(generator[term] or 0, product(generator[term - 1], exponential[root]))
    end
end

-- Two words of parity of a few octets, in the code of packets: one codeword of Reed-Solomon.
function sums.armour(octets)
    local register = { 0, 0, 0, 0, 0, 0, 0, 0 }
    for at = 1, #octets do
        local factor = bxor(octets:byte(at), register[1])
        for term = 1, ARMOUR_BYTES do
            register[term] = bxor(register[term + 1] or 0, product(factor, generator[term]))
        end
    end
    return string.char(table.unpack(register))
end

-- The Internet checksum: 0 over octets that hold their own.
function sums.internet(octets)
    local sum = 0
    for at = 1, #octets, 2 do
        local high, low = octets:byte(at, at + 1)
        sum = sum + high * 256 + (low or 0)
    end
    while sum > 0xFFFF do
        sum = sum % 0x10000 + math.floor(sum / 0x10000)
    end
    return 0xFFFF - sum
end

return sums
