//! Details of a gRPC status as a `google.rpc.Status`, which gRPC libraries read.
//!
//! A status is sent in headers, and clients accept only 8 kB of headers.

use prost::{Message, Name};

use crate::handler::FunctionFailure;

const TYPE_PREFIX: &str = "type.googleapis.com";

/// Maximum length of the message in the headers, in bytes; it is sent twice: percent-encoded, and as base64 with the
/// detail.
const MESSAGE_BYTES_MAX: usize = 5000;

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Detail>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
struct Detail {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

impl Name for FunctionFailure {
    const NAME: &'static str = "FunctionFailure";
    const PACKAGE: &'static str = "handler";
}

/// A status with one detail and as much of `message` as fits.
///
/// The caller must limit the detail to 2 kB.
pub fn with_detail<T: Name>(code: tonic::Code, message: &str, detail: &T) -> tonic::Status {
    let message = fitting(message).to_owned();
    let detail = Detail { type_url: type_url::<T>(), value: detail.encode_to_vec() };
    let rich = Status { code: code.into(), message: message.clone(), details: vec![detail] };
    tonic::Status::with_details(code, message, rich.encode_to_vec().into())
}

/// The first detail of type `T`, if it can be decoded.
pub fn detail<T: Name + Default>(status: &tonic::Status) -> Option<T> {
    let rich = Status::decode(status.details()).ok()?;
    let detail = rich.details.iter().find(|detail| detail.type_url == type_url::<T>())?;
    T::decode(detail.value.as_slice()).ok()
}

/// The longest prefix that takes at most [`MESSAGE_BYTES_MAX`] bytes.
fn fitting(message: &str) -> &str {
    let mut thirds_left = 3 * MESSAGE_BYTES_MAX;
    let is_over = |byte: u8| {
        let percent = if byte.is_ascii_alphanumeric() { 1 } else { 3 };
        let rest = thirds_left.checked_sub(3 * percent + 4);
        thirds_left = rest.unwrap_or_default();
        rest.is_none()
    };
    let end = message.bytes().position(is_over).unwrap_or(message.len());
    &message[..message.floor_char_boundary(end)]
}

fn type_url<T: Name>() -> String {
    format!("{TYPE_PREFIX}/{}", T::full_name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detail_survives_a_round_trip() {
        let failure = FunctionFailure { function: "decoder".into(), line: 3, ..Default::default() };
        let status = with_detail(tonic::Code::InvalidArgument, "no", &failure);
        assert_eq!(detail::<FunctionFailure>(&status), Some(failure));
        assert_eq!(detail::<FunctionFailure>(&tonic::Status::invalid_argument("no")), None);
        let malformed = tonic::Status::with_details(tonic::Code::Internal, "no", vec![0xff].into());
        assert_eq!(detail::<FunctionFailure>(&malformed), None);
    }

    #[test]
    fn a_status_with_any_text_fits_into_headers() {
        for (character, kept) in [('x', 2142), ('温', 1152)] {
            let failure = FunctionFailure { reason: character.to_string().repeat(600), ..Default::default() };
            let status = with_detail(tonic::Code::InvalidArgument, &character.to_string().repeat(9000), &failure);
            assert_eq!(status.message().len(), kept);
            let headers = status.into_http::<()>().into_parts().0.headers;
            let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum();
            assert!(bytes < 8000, "{bytes}");
        }
    }
}
