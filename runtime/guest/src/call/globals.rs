//! The globals `payload`, `fields` and `port`, which TTN v2 set before it ran a function.

use crate::call::Call;
use crate::failure::Failure;
use crate::guest::Function;
use crate::js::Value;
use crate::wire::Slot;

/// Sets the globals that `function` may read.
pub(crate) fn set(call: &Call<'_>, function: &Function, subject: &Value) -> Result<(), Failure> {
    let (realm, names) = (function.realm(), &call.guest.names);
    if function.reads_global() {
        let name = match function.slot {
            Slot::Decoder | Slot::Encoder => names.payload,
            Slot::Converter | Slot::Validator => names.fields,
        };
        call.made(function, realm.global().set(name, subject.share(realm)))?;
    }
    if function.globals.port {
        call.made(function, realm.global().set(names.port, call.port(realm)))?;
    }
    Ok(())
}
