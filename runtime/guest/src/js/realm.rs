//! A realm: one global object with its own set of built-ins.

use super::script_text::{self, Extent, ScriptText};
use super::value::{Thrown, Value};
use super::{Atom, Runtime};
use rquickjs_sys as qjs;
use std::ffi::{CStr, c_char, c_int};
use std::ptr::NonNull;

/// The longest payload that [`Realm::byte_array`] converts on the stack. Not larger, because the whole buffer is
/// initialized each time and most payloads are far shorter.
const FEW_BYTES: usize = 64;

/// A global object with its own built-ins; functions of one realm do not see the globals of another.
#[derive(Clone, Copy)]
pub(crate) struct Realm(NonNull<qjs::JSContext>);

/// A native function that scripts can call. Its last argument is the number it was created with.
pub(crate) type Native = fn(Realm, &[Value], i32) -> Result<Value, Thrown>;

/// Why a source did not run to its end.
pub(crate) enum Unevaluated {
    /// It is not a valid script, or not a valid module.
    Unreadable(Thrown),
    /// It threw while it ran.
    Threw(Thrown),
    /// It waits for a promise that nothing settles.
    Unsettled,
}

impl Realm {
    /// Creates a realm with all of ECMAScript and nothing else.
    pub(crate) fn new(runtime: Runtime) -> Option<Self> {
        // SAFETY: the runtime is never freed; a context that lacks intrinsics is never used.
        unsafe {
            let context = NonNull::new(qjs::JS_NewContextRaw(runtime.0.as_ptr()))?;
            let raw = context.as_ptr();
            qjs::JS_AddIntrinsicRegExpCompiler(raw);
            let failures = [
                qjs::JS_AddIntrinsicBaseObjects(raw),
                qjs::JS_AddIntrinsicDate(raw),
                qjs::JS_AddIntrinsicEval(raw),
                qjs::JS_AddIntrinsicRegExp(raw),
                qjs::JS_AddIntrinsicJSON(raw),
                qjs::JS_AddIntrinsicProxy(raw),
                qjs::JS_AddIntrinsicMapSet(raw),
                qjs::JS_AddIntrinsicTypedArrays(raw),
                qjs::JS_AddIntrinsicPromise(raw),
                qjs::JS_AddIntrinsicWeakRef(raw),
            ];
            failures.iter().all(|failure| *failure == 0).then_some(Self(context))
        }
    }

    pub(super) fn of(context: NonNull<qjs::JSContext>) -> Self {
        Self(context)
    }

    pub(super) fn raw(self) -> *mut qjs::JSContext {
        self.0.as_ptr()
    }

    /// Takes ownership of one reference to `raw`.
    pub(super) fn own(self, raw: qjs::JSValue) -> Value {
        Value::from_raw(self, raw)
    }

    /// Takes ownership of a result of QuickJS: a value, or the marker of an exception.
    pub(super) fn result(self, raw: qjs::JSValue) -> Result<Value, Thrown> {
        if raw == qjs::JS_EXCEPTION { Err(self.thrown()) } else { Ok(self.own(raw)) }
    }

    /// Takes the pending exception.
    pub(super) fn thrown(self) -> Thrown {
        // SAFETY: the context is never freed.
        Thrown(self.own(unsafe { qjs::JS_GetException(self.raw()) }))
    }

    /// Runs `text` as a sloppy-mode script.
    pub(crate) fn run(self, text: &ScriptText, file: &CStr) -> Result<(), Unevaluated> {
        let compiled =
            self.eval(text.extent(), file, qjs::JS_EVAL_FLAG_COMPILE_ONLY).map_err(Unevaluated::Unreadable)?;
        // SAFETY: `compiled` is a script of this context, and the call takes over its reference.
        let evaluated = self.result(unsafe { qjs::JS_EvalFunction(self.raw(), compiled.into_raw()) });
        evaluated.map(drop).map_err(Unevaluated::Threw)
    }

    /// Evaluates a built-in expression.
    pub(crate) fn value_of(self, expression: &CStr) -> Result<Value, Thrown> {
        self.eval(script_text::extent(expression), c"airlock", 0)
    }

    fn eval(self, (start, length): Extent, file: &CStr, flags: u32) -> Result<Value, Thrown> {
        let flags = (qjs::JS_EVAL_TYPE_GLOBAL | flags) as c_int;
        // SAFETY: both texts end in a zero byte.
        self.result(unsafe { qjs::JS_Eval(self.raw(), start, length, file.as_ptr(), flags) })
    }

    pub(crate) fn global(self) -> Value {
        // SAFETY: the context is never freed.
        self.own(unsafe { qjs::JS_GetGlobalObject(self.raw()) })
    }

    /// The value `undefined`.
    pub(crate) fn undefined(self) -> Value {
        self.own(qjs::JS_UNDEFINED)
    }

    /// The value `null`.
    pub(crate) fn null(self) -> Value {
        self.own(qjs::JS_NULL)
    }

    pub(crate) fn number(self, value: f64) -> Value {
        self.own(qjs::JS_NewFloat64(value))
    }

    /// True or false.
    pub(crate) fn boolean(self, value: bool) -> Value {
        self.own(if value { qjs::JS_TRUE } else { qjs::JS_FALSE })
    }

    pub(crate) fn string(self, text: &str) -> Result<Value, Thrown> {
        // SAFETY: the pointer and length are those of `text`.
        self.result(unsafe { qjs::JS_NewStringLen(self.raw(), text.as_ptr().cast::<c_char>(), text.len() as _) })
    }

    /// An object without properties.
    pub(crate) fn object(self) -> Result<Value, Thrown> {
        // SAFETY: the context is never freed.
        self.result(unsafe { qjs::JS_NewObject(self.raw()) })
    }

    pub(crate) fn date(self, time_ms: i64) -> Result<Value, Thrown> {
        // SAFETY: the context is never freed.
        self.result(unsafe { qjs::JS_NewDate(self.raw(), time_ms as f64) })
    }

    /// An ordinary array of the numbers in `bytes`.
    pub(crate) fn byte_array(self, bytes: &[u8]) -> Result<Value, Thrown> {
        let number = |byte: &u8| qjs::JS_MKVAL(qjs::JS_TAG_INT, i32::from(*byte));
        if bytes.len() > FEW_BYTES {
            return self.array(&bytes.iter().map(number).collect::<Vec<_>>());
        }
        let mut values = [qjs::JS_UNDEFINED; FEW_BYTES];
        for (value, byte) in values.iter_mut().zip(bytes) {
            *value = number(byte);
        }
        self.array(&values[..bytes.len()])
    }

    /// A `Uint8Array` with a copy of `bytes`.
    pub(crate) fn bytes(self, bytes: &[u8]) -> Result<Value, Thrown> {
        // SAFETY: the pointer and length are those of `bytes`, which the call copies.
        self.result(unsafe { qjs::JS_NewUint8ArrayCopy(self.raw(), bytes.as_ptr(), bytes.len() as qjs::size_t) })
    }

    fn array(self, numbers: &[qjs::JSValue]) -> Result<Value, Thrown> {
        // SAFETY: numbers hold no references.
        self.result(unsafe { qjs::JS_NewArrayFrom(self.raw(), numbers.len() as c_int, numbers.as_ptr()) })
    }

    pub(crate) fn parse_json(self, text: &CStr) -> Result<Value, Thrown> {
        let length = text.to_bytes().len() as qjs::size_t;
        // SAFETY: the text ends in a zero byte.
        self.result(unsafe { qjs::JS_ParseJSON(self.raw(), text.as_ptr(), length, c"input".as_ptr()) })
    }

    /// A function that calls `native` with `number`.
    pub(crate) fn function(self, name: &CStr, native: Native, number: i32) -> Result<Value, Thrown> {
        let mut target = qjs::JS_MKVAL(qjs::JS_TAG_INT, native as usize as i32);
        // SAFETY: `target` is a number, copied by the call; scripts cannot reach it.
        self.result(unsafe {
            qjs::JS_NewCFunctionData2(self.raw(), Some(call_native), name.as_ptr(), 0, number, 1, &raw mut target)
        })
    }

    /// The property name `text`; never freed.
    pub(crate) fn atom(self, text: &str) -> Atom {
        // SAFETY: the pointer and length are those of `text`.
        Atom(unsafe { qjs::JS_NewAtomLen(self.raw(), text.as_ptr().cast::<c_char>(), text.len() as _) })
    }
}

unsafe extern "C" fn call_native(
    context: *mut qjs::JSContext,
    _: qjs::JSValue,
    count: c_int,
    arguments: *mut qjs::JSValue,
    number: c_int,
    target: *mut qjs::JSValue,
) -> qjs::JSValue {
    let Some(context) = NonNull::new(context) else { return qjs::JS_UNDEFINED };
    let realm = Realm(context);
    // SAFETY: QuickJS passes `count` live arguments; each is given a reference of its own. The target is the number
    // that `Realm::function` made from a `Native`.
    let (native, arguments) = unsafe {
        let native = std::mem::transmute::<usize, Native>(qjs::JS_VALUE_GET_INT(*target) as usize);
        let raw = std::slice::from_raw_parts(arguments, if arguments.is_null() { 0 } else { count as usize });
        (native, raw.iter().map(|value| realm.own(qjs::JS_DupValue(context.as_ptr(), *value))).collect::<Vec<_>>())
    };
    match native(realm, &arguments, number) {
        Ok(value) => value.into_raw(),
        // SAFETY: the call takes over the reference to what was thrown.
        Err(Thrown(value)) => unsafe { qjs::JS_Throw(context.as_ptr(), value.into_raw()) },
    }
}
