//! Runs one function alone and returns its whole result.

use super::{downlink, ts013, uplink};
use crate::call::{Call, Outcome};
use crate::failure::Failure;
use crate::guest::Functions;
use crate::load::definitions::Definitions;
use crate::wire::{self, FailureKind};

/// Calls the function with the arguments that a message would give it.
pub(crate) fn run(call: &mut Call<'_>, functions: &Functions, which: wire::Function) -> Result<Outcome, Failure> {
    let function = functions[which as usize].as_ref().ok_or_else(|| missing(which))?;
    let returned = match which {
        wire::Function::Decoder => uplink::call_decoder(call, function)?,
        wire::Function::DecodeDownlink => ts013::call_with_bytes(call, function)?,
        wire::Function::Converter | wire::Function::Validator => {
            let fields = call.value(function)?;
            uplink::call_with_fields(call, function, &fields)?
        }
        wire::Function::Encoder => downlink::call_encoder(call, function, call.value(function)?)?,
        wire::Function::NormalizeUplink => ts013::call_with_data(call, function, call.value(function)?, 0)?,
    };
    Ok(Outcome::Returned { json: call.json(function, returned)? })
}

fn missing(which: wire::Function) -> Failure {
    Failure::new(which.slot(), FailureKind::Syntax, Definitions::expected(&[which], None))
}
