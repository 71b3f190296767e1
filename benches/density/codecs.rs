//! The codecs of the applications, with one message each.

use runtime::{Call, Sources};

use crate::records;

/// A decoder and a message.
pub(crate) struct Codec {
    pub(crate) script: String,
    pub(crate) call: Call,
}

impl Codec {
    /// The codec as the decoder of application number `number`.
    pub(crate) fn sources(&self, number: usize) -> Sources {
        Sources { decoder: self.text(number), ..Sources::default() }
    }

    /// The source, made unique for each application.
    pub(crate) fn text(&self, number: usize) -> String {
        format!("{}\nvar applicationNumber = {number};", self.script)
    }
}

/// The codecs that decode an uplink.
pub(crate) fn read() -> Vec<Codec> {
    let with_message = |codec: workbench::Codec| {
        let call = records::uplinks(&codec).next()?;
        Some(Codec { script: codec.script, call })
    };
    records::read().into_iter().filter_map(with_message).collect()
}
