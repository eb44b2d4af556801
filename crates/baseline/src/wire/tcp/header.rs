//! The fixed header and the checksum.

use super::address::AddressPair;
use super::flags::TcpFlags;
use super::options::TcpOptions;
use super::reject::TcpReject;
use super::seq::TcpSeq;
use fulmar_proto::wire::Port;

/// The header's length without options.
pub const TCP_HEADER_BYTES: usize = 20;

/// The fields of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpHeader {
    /// The sending port.
    pub source: Port,
    /// The receiving port.
    pub destination: Port,
    /// The number of the first octet, or of the SYN.
    pub seq: TcpSeq,
    /// The number expected next, if the ACK bit is set.
    pub ack: TcpSeq,
    /// Control bits.
    pub flags: TcpFlags,
    /// The window, not shifted.
    pub window: u16,
    /// The urgent pointer.
    pub urgent: u16,
    /// Options.
    pub options: TcpOptions,
}

/// A segment that passed its checks.
#[derive(Clone, Copy, Debug)]
pub struct TcpSegment<'a> {
    /// The header.
    pub header: TcpHeader,
    /// The payload.
    pub payload: &'a [u8],
}

impl TcpSegment<'_> {
    /// Sequence numbers the segment takes: its octets, and one each for SYN and FIN.
    pub fn sequence_len(&self) -> u64 {
        let flag = |bit| u64::from(self.header.flags.has(bit));
        self.payload.len() as u64 + flag(TcpFlags::SYN) + flag(TcpFlags::FIN)
    }
}

impl TcpHeader {
    /// Appends header, options and payload to `out`, with the checksum over all and the pseudo
    /// header of `addresses`. Returns the number of octets.
    pub fn write(&self, addresses: &AddressPair, payload: &[u8], out: &mut Vec<u8>) -> usize {
        let from = out.len();
        let header_bytes = TCP_HEADER_BYTES + self.options.len();
        out.extend_from_slice(&self.source.0.to_be_bytes());
        out.extend_from_slice(&self.destination.0.to_be_bytes());
        out.extend_from_slice(&self.seq.0.to_be_bytes());
        out.extend_from_slice(&self.ack.0.to_be_bytes());
        // At most 60 octets, so that the offset fits its four bits.
        out.push(u8::try_from(header_bytes / 4).unwrap_or(15) << 4);
        out.push(self.flags.0);
        out.extend_from_slice(&self.window.to_be_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&self.urgent.to_be_bytes());
        self.options.write(out);
        out.extend_from_slice(payload);
        let written = out.get(from..).unwrap_or_default();
        let len = written.len();
        let checksum = addresses
            .pseudo_header(u32::try_from(len).unwrap_or(u32::MAX))
            .and(written)
            .finish();
        if let Some(field) = out.get_mut(from + 16..from + 18) {
            field.copy_from_slice(&checksum.to_be_bytes());
        }
        len
    }

    /// Reads the segment in `octets`.
    ///
    /// # Errors
    /// See [`TcpReject`]; nothing is trusted before the checksum matches.
    pub fn parse<'a>(
        addresses: &AddressPair,
        octets: &'a [u8],
    ) -> Result<TcpSegment<'a>, TcpReject> {
        let head: &[u8; TCP_HEADER_BYTES] = octets.first_chunk().ok_or(TcpReject::Truncated)?;
        let length = u32::try_from(octets.len()).unwrap_or(u32::MAX);
        if addresses.pseudo_header(length).and(octets).finish() != 0 {
            return Err(TcpReject::Checksum);
        }
        let [
            a,
            b,
            c,
            d,
            s0,
            s1,
            s2,
            s3,
            k0,
            k1,
            k2,
            k3,
            offset,
            flags,
            w0,
            w1,
            _,
            _,
            u0,
            u1,
        ] = *head;
        let header_bytes = usize::from(offset >> 4) * 4;
        if header_bytes < TCP_HEADER_BYTES {
            return Err(TcpReject::DataOffset);
        }
        let options = octets
            .get(TCP_HEADER_BYTES..header_bytes)
            .ok_or(TcpReject::Truncated)?;
        Ok(TcpSegment {
            header: Self {
                source: Port(u16::from_be_bytes([a, b])),
                destination: Port(u16::from_be_bytes([c, d])),
                seq: TcpSeq(u32::from_be_bytes([s0, s1, s2, s3])),
                ack: TcpSeq(u32::from_be_bytes([k0, k1, k2, k3])),
                flags: TcpFlags(flags),
                window: u16::from_be_bytes([w0, w1]),
                urgent: u16::from_be_bytes([u0, u1]),
                options: TcpOptions::parse(options)?,
            },
            payload: octets.get(header_bytes..).unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests;
