//! Products, inverses and powers as tables, computed at compile time.

/// The polynomial x^8 + x^4 + x^3 + x^2 + 1, of which x is a primitive element (RFC 8681, section
/// 3.7.1).
const POLYNOMIAL: u16 = 0x11D;

/// The number of non-zero elements; powers of the primitive element repeat with this period.
pub(crate) const ORDER: usize = 255;

/// The product by shift and reduce, for building tables.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the reduction keeps the running term below 2^8; no TryFrom in const functions"
)]
const fn product_by_shifts(a: u8, b: u8) -> u8 {
    let mut sum = 0u16;
    let mut term = a as u16;
    let mut rest = b;
    while rest != 0 {
        if rest & 1 == 1 {
            sum ^= term;
        }
        term <<= 1;
        if term & 0x100 != 0 {
            term ^= POLYNOMIAL;
        }
        rest >>= 1;
    }
    sum as u8
}

/// The powers: `EXPONENTIAL[i]` = x^i.
static EXPONENTIAL: [u8; ORDER] = {
    let mut table = [0; ORDER];
    let mut element = 1;
    let mut i = 0;
    while i < ORDER {
        table[i] = element;
        element = product_by_shifts(element, 2);
        i += 1;
    }
    table
};

/// The products: `PRODUCT[a][b]` = a · b.
pub(super) static PRODUCT: [[u8; 256]; 256] = {
    let mut table = [[0; 256]; 256];
    // Rows are filled from exponents, since shifts for all 65536 products slow the compiler.
    let mut i = 0;
    while i < ORDER {
        let a = EXPONENTIAL[i] as usize;
        let mut j = 0;
        while j < ORDER {
            table[a][EXPONENTIAL[j] as usize] = EXPONENTIAL[(i + j) % ORDER];
            j += 1;
        }
        i += 1;
    }
    table
};

static INVERSE: [u8; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < ORDER {
        table[EXPONENTIAL[i] as usize] = EXPONENTIAL[(ORDER - i) % ORDER];
        i += 1;
    }
    table
};

/// The products of each factor with 0..16, then those with 0, 16, .. 240: the two look-ups of a
/// byte shuffle.
#[cfg(target_arch = "x86_64")]
pub(super) static NIBBLES: [[[u8; 16]; 2]; 256] = {
    let mut table = [[[0; 16]; 2]; 256];
    let mut factor = 0;
    while factor < 256 {
        let mut nibble = 0;
        while nibble < 16 {
            table[factor][0][nibble] = PRODUCT[factor][nibble];
            table[factor][1][nibble] = PRODUCT[factor][nibble << 4];
            nibble += 1;
        }
        factor += 1;
    }
    table
};

/// The 8 x 8 bit matrix of each factor that multiplies by it, in the layout of the GFNI affine
/// instructions: the row of result bit i is octet 7 - i.
#[cfg(target_arch = "x86_64")]
pub(super) static AFFINE: [u64; 256] = {
    let mut table = [0; 256];
    let mut factor = 0;
    while factor < 256 {
        let mut column = 0;
        while column < 8 {
            let image = PRODUCT[factor][1 << column];
            let mut row = 0;
            while row < 8 {
                let bit = ((image >> row) & 1) as u64;
                table[factor] |= bit << (8 * (7 - row) + column);
                row += 1;
            }
            column += 1;
        }
        factor += 1;
    }
    table
};

/// The product a · b.
pub fn product(a: u8, b: u8) -> u8 {
    PRODUCT[usize::from(a)][usize::from(b)]
}

/// The inverse 1 / `a`; 0 for 0, which has no inverse.
pub fn inverse(a: u8) -> u8 {
    INVERSE[usize::from(a)]
}

/// The power x^`exponent`, x being the primitive element.
pub(crate) const fn power(exponent: usize) -> u8 {
    EXPONENTIAL[exponent % ORDER]
}
