//! One function by itself, for whoever wants to see all that it returns.

use crate::call::{Call, Outcome};
use crate::dialect::Function;
use crate::failure::Failure;
use crate::guest::Functions;
use crate::wire::{self, Kind};
use crate::{downlink, ts013, uplink};

/// Calls the function that `which` names, with the arguments that a message would give it.
pub(crate) fn run(call: &mut Call<'_>, functions: &Functions, which: wire::Function) -> Result<Outcome, Failure> {
    let function = functions[which as usize].as_ref().ok_or_else(|| missing(which))?;
    let returned = match which {
        wire::Function::Decoder => uplink::ask(call, function)?,
        wire::Function::DecodeDownlink => ts013::call_with_bytes(call, function)?,
        wire::Function::Converter | wire::Function::Validator => {
            let fields = call.value(function)?;
            uplink::pass_on(call, function, &fields)?
        }
        wire::Function::Encoder => downlink::ask(call, function, call.value(function)?)?,
        wire::Function::NormalizeUplink => ts013::call_with_data(call, function, call.value(function)?, 0)?,
    };
    Ok(Outcome::Returned { json: call.json(function, returned)? })
}

fn missing(which: wire::Function) -> Failure {
    Failure::new(Function::slot_of(which), Kind::Syntax, Function::expected(&[which], None))
}
