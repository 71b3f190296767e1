//! Details of a gRPC status, in the form that gRPC libraries read: `google.rpc.Status`, whose three fields are all
//! that is needed of it.

use prost::{Message, Name};

use crate::handler::FunctionFailure;

/// What the address of a type in a detail begins with.
const TYPE_PREFIX: &str = "type.googleapis.com";

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

/// The status `code` with `message` and one detail.
pub fn with_detail<T: Name>(code: tonic::Code, message: String, detail: &T) -> tonic::Status {
    let detail = Detail { type_url: type_url::<T>(), value: detail.encode_to_vec() };
    let rich = Status { code: code.into(), message: message.clone(), details: vec![detail] };
    tonic::Status::with_details(code, message, rich.encode_to_vec().into())
}

/// The first detail of that type; none when the status has none that reads.
pub fn detail<T: Name + Default>(status: &tonic::Status) -> Option<T> {
    let rich = Status::decode(status.details()).ok()?;
    let detail = rich.details.iter().find(|detail| detail.type_url == type_url::<T>())?;
    T::decode(detail.value.as_slice()).ok()
}

fn type_url<T: Name>() -> String {
    format!("{TYPE_PREFIX}/{}", T::full_name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detail_survives_the_way_over_a_status() {
        let failure = FunctionFailure { function: "decoder".into(), line: 3, ..Default::default() };
        let status = with_detail(tonic::Code::InvalidArgument, "no".into(), &failure);
        assert_eq!(detail::<FunctionFailure>(&status), Some(failure));
        assert_eq!(detail::<FunctionFailure>(&tonic::Status::invalid_argument("no")), None);
        let nonsense = tonic::Status::with_details(tonic::Code::Internal, "no", vec![0xff].into());
        assert_eq!(detail::<FunctionFailure>(&nonsense), None);
    }
}
