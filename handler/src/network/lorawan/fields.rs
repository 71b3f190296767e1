//! The fields of a data frame on the air, where numbers are little endian.

use types::DevAddr;

use super::crypto::MIC_BYTES;

const MAJOR_MASK: u8 = 0b0001_1111;
const F_OPTS_LENGTH_MASK: u8 = 0x0f;

/// The type of a data frame, with the bits of the LoRaWAN version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameType {
    UnconfirmedUp = 0x40,
    UnconfirmedDown = 0x60,
    ConfirmedUp = 0x80,
    ConfirmedDown = 0xa0,
}

/// The fields of a data frame, but for its MIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) frame_type: FrameType,
    pub(super) dev_addr: DevAddr,
    /// The control bits, without the length of the options.
    pub(super) f_ctrl: u8,
    /// The low 16 bits of the frame counter.
    pub(super) f_cnt: u16,
    /// The network's MAC commands.
    pub(super) f_opts: Vec<u8>,
    pub(super) f_port: Option<u8>,
    /// Encrypted.
    pub(super) payload: Vec<u8>,
}

impl FrameType {
    fn of(m_hdr: u8) -> Option<Self> {
        // Other versions of LoRaWAN have other frames.
        let known = [Self::UnconfirmedUp, Self::UnconfirmedDown, Self::ConfirmedUp, Self::ConfirmedDown];
        known.into_iter().find(|known| m_hdr == *known as u8 && m_hdr & MAJOR_MASK == 0)
    }
}

impl Fields {
    /// Splits a frame into its fields and its MIC; none if it is not a data frame of LoRaWAN 1.0.
    pub(super) fn parse(frame: &[u8]) -> Option<(Self, [u8; MIC_BYTES])> {
        let (signed, mic) = frame.split_last_chunk()?;
        let (&[m_hdr, d, c, b, a, f_ctrl, low, high], rest) = signed.split_first_chunk()?;
        let (f_opts, rest) = rest.split_at_checked(usize::from(f_ctrl & F_OPTS_LENGTH_MASK))?;
        let (f_port, payload) = rest.split_first().map_or((None, &[][..]), |(port, payload)| (Some(*port), payload));
        let fields = Self {
            frame_type: FrameType::of(m_hdr)?,
            dev_addr: DevAddr::new([a, b, c, d]),
            f_ctrl: f_ctrl & !F_OPTS_LENGTH_MASK,
            f_cnt: u16::from_le_bytes([low, high]),
            f_opts: f_opts.to_vec(),
            f_port,
            payload: payload.to_vec(),
        };
        Some((fields, *mic))
    }

    /// The frame without its MIC.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let [a, b, c, d] = *self.dev_addr.as_bytes();
        let [low, high] = self.f_cnt.to_le_bytes();
        // Parsed options are never longer.
        let f_ctrl = self.f_ctrl | self.f_opts.len() as u8 & F_OPTS_LENGTH_MASK;
        let mut bytes = vec![self.frame_type as u8, d, c, b, a, f_ctrl, low, high];
        bytes.extend(&self.f_opts);
        bytes.extend(self.f_port);
        bytes.extend(&self.payload);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_frame_is_refused_or_written_as_it_was_read(
            head in any::<u8>(),
            rest in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let frame = [&[head][..], &rest].concat();
            if let Some((fields, mic)) = Fields::parse(&frame) {
                prop_assert!([0x40, 0x60, 0x80, 0xa0].contains(&head));
                prop_assert_eq!([&fields.to_bytes()[..], &mic].concat(), frame);
            }
        }
    }

    #[test]
    fn options_that_the_frame_does_not_have_are_refused() {
        let mut frame = vec![0x40, 1, 2, 3, 4, 0x02, 0, 0, 0xaa, 0xbb, 0, 0, 0, 0];
        assert_eq!(Fields::parse(&frame).unwrap().0.f_opts, [0xaa, 0xbb]);
        frame[5] = 0x03;
        assert_eq!(Fields::parse(&frame), None);
    }
}
