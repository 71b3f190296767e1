//! ES modules: how they are run, and what they may import.

use super::realm::Realm;
use super::script::{self, Extent, ScriptText, Unevaluated};
use super::value::{Thrown, Value};
use rquickjs_sys as qjs;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{self, NonNull};

/// The one module that sources may import.
const BUFFER: &CStr = c"buffer";
const BUFFER_SOURCE: &CStr = c"export const Buffer = globalThis.Buffer; export default { Buffer };";

impl Realm {
    /// Runs `text` as a module, with `footer` behind it, where the names that it defines are in scope. Returns the
    /// namespace of the module: an object with what it exports.
    pub(crate) fn run_module(self, text: &ScriptText, footer: &str, file: &CStr) -> Result<Value, Unevaluated> {
        let module = self.compile_with_footer(text, footer, file).map_err(Unevaluated::Unreadable)?;
        // SAFETY: the value is a module, which its context keeps alive.
        let definition = unsafe { qjs::JS_VALUE_GET_PTR(module.raw()).cast() };
        // SAFETY: the value is a module of this context, and the call takes over its reference.
        let evaluated = self.result(unsafe { qjs::JS_EvalFunction(self.raw(), module.into_raw()) });
        let promise = evaluated.map_err(Unevaluated::Threw)?;
        self.run_jobs().map_err(Unevaluated::Threw)?;
        promise.check_fulfilled()?;
        // SAFETY: the definition belongs to a module of this context.
        self.result(unsafe { qjs::JS_GetModuleNamespace(self.raw(), definition) }).map_err(Unevaluated::Threw)
    }

    /// An error in `text` has its position there, also when it is something that is missing at the end.
    fn compile_with_footer(self, text: &ScriptText, footer: &str, file: &CStr) -> Result<Value, Thrown> {
        let whole = ScriptText::new(&[text.as_bytes(), b"\n", footer.as_bytes()].concat());
        self.compile_module(whole.extent(), file).or_else(|thrown| match self.compile_module(text.extent(), file) {
            Ok(_) => Err(thrown),
            Err(thrown) => Err(thrown),
        })
    }

    fn compile_module(self, (start, length): Extent, file: &CStr) -> Result<Value, Thrown> {
        let flags = (qjs::JS_EVAL_TYPE_MODULE | qjs::JS_EVAL_FLAG_COMPILE_ONLY) as c_int;
        // SAFETY: both texts end in a zero byte.
        self.result(unsafe { qjs::JS_Eval(self.raw(), start, length, file.as_ptr(), flags) })
    }

    /// Runs what waits for promises, such as a module behind a top-level `await`. A job that throws ran out of fuel or
    /// memory: what scripts throw rejects a promise.
    fn run_jobs(self) -> Result<(), Thrown> {
        let mut context = ptr::null_mut();
        loop {
            // SAFETY: the runtime is never freed. Each job consumes fuel, so this ends.
            let status = unsafe { qjs::JS_ExecutePendingJob(qjs::JS_GetRuntime(self.raw()), &raw mut context) };
            match NonNull::new(context) {
                Some(context) if status < 0 => return Err(Realm::of(context).thrown()),
                Some(_) if status > 0 => {}
                _ => return Ok(()),
            }
        }
    }
}

impl Value {
    /// True if a promise was fulfilled, when no job is left that could do it.
    fn check_fulfilled(&self) -> Result<(), Unevaluated> {
        let realm = self.realm();
        // SAFETY: the value is live.
        unsafe {
            match qjs::JS_PromiseState(realm.raw(), self.raw()) {
                qjs::JSPromiseStateEnum_JS_PROMISE_FULFILLED => Ok(()),
                qjs::JSPromiseStateEnum_JS_PROMISE_REJECTED => {
                    Err(Unevaluated::Threw(Thrown(realm.own(qjs::JS_PromiseResult(realm.raw(), self.raw())))))
                }
                _ => Err(Unevaluated::Unsettled),
            }
        }
    }
}

/// Finds the module `name`: `buffer`, or nothing.
pub(super) unsafe extern "C" fn load(
    context: *mut qjs::JSContext,
    name: *const c_char,
    _: *mut c_void,
) -> *mut qjs::JSModuleDef {
    let Some(context) = NonNull::new(context) else { return ptr::null_mut() };
    let realm = Realm::of(context);
    // SAFETY: QuickJS passes a text that ends in a zero byte.
    let name = unsafe { CStr::from_ptr(name) };
    let loaded = if name == BUFFER {
        realm.compile_module(script::extent(BUFFER_SOURCE), BUFFER)
    } else {
        Err(unknown(realm, name))
    };
    match loaded {
        // SAFETY: the value is a module, which its context keeps alive.
        Ok(module) => unsafe { qjs::JS_VALUE_GET_PTR(module.raw()).cast() },
        Err(Thrown(error)) => {
            // SAFETY: the call takes over the reference to what is thrown.
            unsafe { qjs::JS_Throw(realm.raw(), error.into_raw()) };
            ptr::null_mut()
        }
    }
}

fn unknown(realm: Realm, name: &CStr) -> Thrown {
    let message = format!("cannot import '{}': only 'buffer' can be imported", name.to_string_lossy());
    let error = realm.string(&message).and_then(|message| {
        realm.value_of(c"message => new SyntaxError(message)")?.call(&realm.undefined(), [&message])
    });
    match error {
        Ok(error) => Thrown(error),
        Err(thrown) => thrown,
    }
}
