//! The codecs that are measured, with some messages of each.

use airlock::codec_check;
use runtime::{Call, Dialect, Slot, Sources};

use crate::shared::codecs;

/// The most messages of one codec, so that none weighs more than others in the time of a run.
const MESSAGES_MAX: usize = 8;
/// The member of records whose scripts read the globals of The Things Network v2.
const READS_GLOBALS: &str = "v2_globals";

/// A codec with messages for it.
pub(crate) struct Codec {
    pub(crate) id: String,
    pub(crate) script: String,
    pub(crate) dialect: Dialect,
    /// Whether the script reads the globals `payload` and `port`.
    pub(crate) reads_globals: bool,
    /// Uplinks.
    pub(crate) messages: Vec<Call>,
}

impl Codec {
    /// The name of the function that decodes.
    pub(crate) fn function_name(&self) -> &'static str {
        self.dialect.function_name(Slot::Decoder).unwrap()
    }

    /// The codec as the decoder of an application.
    pub(crate) fn sources(&self) -> Sources {
        Sources { decoder: self.script.clone(), dialect: Some(self.dialect), ..Sources::default() }
    }

    /// The same with a converter that adds a field and a validator that looks at it.
    pub(crate) fn three_sources(&self) -> Sources {
        Sources {
            converter: "function Converter(decoded, port) { decoded.converted_port = port; return decoded; }".into(),
            validator: "function Validator(converted, port) { return converted.converted_port === port; }".into(),
            ..self.sources()
        }
    }
}

/// The codecs of the corpus that have a style and an uplink.
pub(crate) fn read() -> Vec<Codec> {
    codecs::read().into_iter().filter_map(with_messages).collect()
}

fn with_messages(codec: codec_check::Codec) -> Option<Codec> {
    let messages: Vec<Call> = codecs::uplinks(&codec).take(MESSAGES_MAX).collect();
    let codec_check::Codec { id, script, dialect, unknown_members, .. } = codec;
    let codec =
        Codec { id, script, dialect: dialect?, reads_globals: unknown_members.contains(READS_GLOBALS), messages };
    (!codec.messages.is_empty()).then_some(codec)
}
