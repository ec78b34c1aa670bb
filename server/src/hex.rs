//! Bytes as people and headers write them.

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `None` when they are something else.
pub(crate) fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |pair: &[u8]| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?);
    digits.chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_the_bytes_they_were_made_of() {
        assert_eq!(from_hex(&hex(&[0, 1, 0x7f, 0xff])).unwrap(), [0, 1, 0x7f, 0xff]);
        assert_eq!(from_hex("Ab").unwrap(), [0xab]);
        assert_eq!(from_hex("").unwrap(), [0_u8; 0]);
        for odd in ["a", "abc", "0g", "é0", "+1"] {
            assert_eq!(from_hex(odd), None, "{odd}");
        }
    }
}
