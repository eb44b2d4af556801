//! The frame of the plain layer: a kind, a packet, a check.
//!
//! ```text
//!  0x10 | packet | CRC-32
//! ```

use super::{FrameReject, LinkKind, open, seal};

/// Octets around a packet.
pub const PLAIN_OVERHEAD_BYTES: usize = 5;

/// Appends the frame that carries `packet`.
pub fn encode(packet: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.push(LinkKind::PLAIN_DATA.0);
    out.extend_from_slice(packet);
    seal(out, start);
}

/// The packet in a frame.
///
/// # Errors
/// See [`FrameReject`].
pub fn parse(octets: &[u8]) -> Result<&[u8], FrameReject> {
    match open(octets)?.split_first() {
        Some((&kind, _)) if kind != LinkKind::PLAIN_DATA.0 => Err(FrameReject::Kind),
        None | Some((_, [])) => Err(FrameReject::Truncated),
        Some((_, packet)) => Ok(packet),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_octets() {
        let mut frame = Vec::new();
        encode(b"hi", &mut frame);
        assert_eq!(frame, [0x10, b'h', b'i', 0x7A, 0x2D, 0x42, 0x31]);
        assert_eq!(frame.len(), 2 + PLAIN_OVERHEAD_BYTES);
        assert_eq!(parse(&frame), Ok(&b"hi"[..]));
    }

    #[test]
    fn a_frame_of_another_layer_or_without_a_packet_is_refused() {
        let sealed = |content: &[u8]| {
            let mut frame = content.to_vec();
            seal(&mut frame, 0);
            frame
        };
        assert_eq!(parse(&sealed(&[0x20, 1, 2])), Err(FrameReject::Kind));
        assert_eq!(parse(&sealed(&[0x10])), Err(FrameReject::Truncated));
        assert_eq!(parse(&sealed(&[])), Err(FrameReject::Truncated));
    }
}
