//! The codecs to measure, with a few messages each.

use runtime::{Call, Dialect, Slot, Sources};

use crate::records;

/// Maximum number of messages per codec, so that none dominates a run.
const MESSAGES_MAX: usize = 8;
/// The record member that marks scripts that read the globals of The Things Network v2.
const READS_GLOBALS: &str = "v2_globals";

pub(crate) struct Codec {
    pub(crate) id: String,
    pub(crate) script: String,
    pub(crate) dialect: Dialect,
    /// True if the script reads the globals `payload` and `port`.
    pub(crate) reads_globals: bool,
    pub(crate) messages: Vec<Call>,
}

impl Codec {
    pub(crate) fn function_name(&self) -> &'static str {
        self.dialect.function_name(Slot::Decoder).unwrap()
    }

    /// The codec as an application's decoder.
    pub(crate) fn sources(&self) -> Sources {
        Sources { decoder: self.script.clone(), dialect: Some(self.dialect), ..Sources::default() }
    }

    /// The codec with a converter that adds a field and a validator that checks it.
    pub(crate) fn three_sources(&self) -> Sources {
        Sources {
            converter: "function Converter(decoded, port) { decoded.converted_port = port; return decoded; }".into(),
            validator: "function Validator(converted, port) { return converted.converted_port === port; }".into(),
            ..self.sources()
        }
    }
}

/// The codecs of the corpus that have a dialect and an uplink.
pub(crate) fn read() -> Vec<Codec> {
    records::read().into_iter().filter_map(with_messages).collect()
}

fn with_messages(codec: workbench::Codec) -> Option<Codec> {
    let messages: Vec<Call> = records::uplinks(&codec).take(MESSAGES_MAX).collect();
    let workbench::Codec { id, script, dialect, unknown_members, .. } = codec;
    let codec =
        Codec { id, script, dialect: dialect?, reads_globals: unknown_members.contains(READS_GLOBALS), messages };
    (!codec.messages.is_empty()).then_some(codec)
}
