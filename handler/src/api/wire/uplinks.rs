//! The results of the uplinks of a batch.

use api::{rest::handler as body, uplink::UplinkAnswer};
use server::status::{http, to_status};
use types::Kinded;

use crate::{
    Error,
    uplink::batch::{BatchAnswer, Event, GroupAnswers},
};

/// The answers to some uplinks over gRPC, or the error that ends the stream.
pub(crate) fn messages(event: Event) -> Result<impl Iterator<Item = UplinkAnswer> + Send, Error> {
    match event {
        Event::Answers(GroupAnswers { answers, charge, .. }) => Ok(answers.into_iter().map(move |answer| {
            // Until the last one is taken.
            let _held = &charge;
            message(answer)
        })),
        Event::Ended(_, error) => Err(error),
    }
}

/// The answer to an uplink, as a line over HTTP.
pub(crate) fn body(BatchAnswer { number, result }: BatchAnswer) -> body::UplinkAnswer {
    let answer = body::UplinkAnswer { line: number, ..body::UplinkAnswer::default() };
    match result {
        Ok(handled) => {
            let result = api::handler::SimulatedUplinkResult::from(handled);
            body::UplinkAnswer { result: Some(result.into()), ..answer }
        }
        Err(error) => body::UplinkAnswer { error: Some(error_body(&error)), ..answer },
    }
}

fn message(BatchAnswer { number, result }: BatchAnswer) -> UplinkAnswer {
    match result {
        Ok(handled) => UplinkAnswer { line: number, result: Some(handled.into()), error: None },
        Err(error) => UplinkAnswer { line: number, result: None, error: Some(error_message(&error)) },
    }
}

fn error_message(error: &Error) -> api::uplink::UplinkError {
    let status = to_status(error);
    let retry_after_s = error.exceeded().map_or(0, |exceeded| exceeded.wait_s);
    api::uplink::UplinkError { code: status.code().into(), message: status.message().to_owned(), retry_after_s }
}

fn error_body(error: &Error) -> body::UplinkError {
    let api::uplink::UplinkError { code, message, retry_after_s } = error_message(error);
    let status = http(error.kind()).as_u16();
    body::UplinkError { status, error: message.clone(), code, message, retry_after_s }
}
