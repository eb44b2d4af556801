//! The code that one person reads out and another one types.

use crate::session::Entropy;
use core::fmt;
use core::str::FromStr;
use zeroize::Zeroize;

/// Digits drawn at random.
const RANDOM_DIGITS: usize = 8;
/// All digits: the random ones and the check digit.
const DIGITS: usize = RANDOM_DIGITS + 1;
/// Codes that there are.
const CODES: u64 = 100_000_000;
/// Digits of a group as shown.
const GROUP_DIGITS: usize = 3;

/// A text that is no code. The text is not repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PairingCodeError {
    /// Not nine digits.
    #[error("a code has nine digits, such as 123 456 788; this text has {0}")]
    Length(usize),
    /// Something that is neither a digit nor a separator.
    #[error("a code has digits alone, such as 123 456 788")]
    Character,
    /// The check digit does not fit the others.
    #[error("a digit is mistyped: the last one does not fit the others; the code is still good")]
    Mistyped,
}

/// Eight random digits and a check digit (ISO 7064, MOD 11,10), by which every single wrong digit is noticed where it is
/// typed, without a try.
#[derive(Clone, PartialEq, Eq)]
pub struct PairingCode([u8; DIGITS]);

impl PairingCode {
    /// A new code.
    pub fn generate(entropy: &mut Entropy) -> Self {
        Self::of_number(entropy.below(CODES))
    }

    /// The code whose random digits are those of `number`, modulo the number of codes.
    pub fn of_number(number: u64) -> Self {
        let mut digits = [0; DIGITS];
        let mut rest = number % CODES;
        for digit in digits[..RANDOM_DIGITS].iter_mut().rev() {
            // A remainder by ten fits.
            *digit = u8::try_from(rest % 10).unwrap_or(0);
            rest /= 10;
        }
        digits[RANDOM_DIGITS] = check_digit(&digits[..RANDOM_DIGITS]);
        Self(digits)
    }

    /// The digits as ASCII: the password of the exchange.
    pub(super) fn password(&self) -> [u8; DIGITS] {
        self.0.map(|digit| b'0' + digit)
    }
}

/// The digit that follows `digits` (ISO 7064, MOD 11,10).
fn check_digit(digits: &[u8]) -> u8 {
    let mut product = 10;
    for digit in digits {
        let sum = (product + digit) % 10;
        product = if sum == 0 { 10 } else { sum } * 2 % 11;
    }
    (11 - product) % 10
}

impl fmt::Display for PairingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, group) in self.0.chunks(GROUP_DIGITS).enumerate() {
            if n > 0 {
                f.write_str(" ")?;
            }
            for digit in group {
                write!(f, "{digit}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for PairingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PairingCode(..)")
    }
}

impl FromStr for PairingCode {
    type Err = PairingCodeError;

    /// Blanks, hyphens and points between digits are left out.
    fn from_str(text: &str) -> Result<Self, PairingCodeError> {
        let mut digits = [0; DIGITS];
        let mut found = 0;
        for char in text.chars() {
            if char.is_whitespace() || char == '-' || char == '.' {
                continue;
            }
            let digit = char.to_digit(10).ok_or(PairingCodeError::Character)?;
            if let Some(place) = digits.get_mut(found) {
                *place = u8::try_from(digit).map_err(|_| PairingCodeError::Character)?;
            }
            found += 1;
        }
        if found != DIGITS {
            return Err(PairingCodeError::Length(found));
        }
        if check_digit(&digits[..RANDOM_DIGITS]) != digits[RANDOM_DIGITS] {
            return Err(PairingCodeError::Mistyped);
        }
        Ok(Self(digits))
    }
}

impl Drop for PairingCode {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_as_it_is_shown_and_as_people_type_it() {
        let code = PairingCode::of_number(7_940_000_123);
        let shown = code.to_string();
        assert!(shown.starts_with("400 001 23"), "{shown}");
        assert_eq!(shown.len(), 11);
        for typed in [
            shown.clone(),
            shown.replace(' ', ""),
            shown.replace(' ', "-"),
            format!(" {shown}\n"),
        ] {
            assert_eq!(typed.parse(), Ok(code.clone()), "{typed}");
        }
        assert_eq!(format!("{code:?}"), "PairingCode(..)");
    }

    /// The worked example of the standard for MOD 11,10: 0794 has the check digit 5.
    #[test]
    fn the_check_digit_is_the_standards() {
        assert_eq!(check_digit(&[0, 7, 9, 4]), 5);
    }

    #[test]
    fn every_single_wrong_digit_is_noticed() {
        let mut entropy = Entropy::from_seed([3; 32]);
        for _ in 0..100 {
            let digits = PairingCode::generate(&mut entropy).password();
            for place in 0..DIGITS {
                for wrong in b'0'..=b'9' {
                    let mut typed = digits;
                    typed[place] = wrong;
                    let read = str::from_utf8(&typed).unwrap().parse::<PairingCode>();
                    assert_eq!(read.is_ok(), wrong == digits[place], "{typed:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_code_is_refused() {
        let refused = |text: &str| text.parse::<PairingCode>().unwrap_err();
        assert_eq!(refused(""), PairingCodeError::Length(0));
        assert_eq!(refused("123 456 78"), PairingCodeError::Length(8));
        assert_eq!(refused(&"1".repeat(1_000)), PairingCodeError::Length(1_000));
        assert_eq!(refused("123 456 78x"), PairingCodeError::Character);
        let shown = PairingCode::of_number(12_345_678).to_string();
        assert_eq!(shown, "123 456 788", "as the errors show one");
    }
}
