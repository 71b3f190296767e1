//! The same codecs in native QuickJS, without a sandbox.

use rquickjs::context::EvalOptions;
use rquickjs::{Context, Ctx, Function, IntoJs, Object, Persistent, Runtime, Value};
use runtime::{Call, Dialect};

use crate::codecs::Codec;

/// Globals that every server provides.
pub(crate) const PRELUDE: &str = "var module = { exports: {} }, exports = module.exports;";

/// One context for all messages, without isolation.
pub(crate) struct Warm {
    // Dropped before the context, which must outlive it.
    function: Persistent<Function<'static>>,
    context: Context,
}

impl Warm {
    /// Evaluates the codec; `None` if that fails in this engine.
    pub(crate) fn new(codec: &Codec) -> Option<Self> {
        let context = Context::full(&Runtime::new().unwrap()).unwrap();
        let function = context.with(|ctx| {
            evaluate(&ctx, PRELUDE)?;
            evaluate(&ctx, &codec.script)?;
            Some(Persistent::save(&ctx, look_up(&ctx, codec)?))
        })?;
        Some(Self { function, context })
    }

    /// Runs all messages `times` times.
    pub(crate) fn run(&self, codec: &Codec, times: u32) {
        self.context.with(|ctx| {
            let function = self.function.clone().restore(&ctx).unwrap();
            for _ in 0..times {
                for message in &codec.messages {
                    decode(&ctx, &function, codec, message).unwrap();
                }
            }
        });
    }

    /// Returns true if a message decodes to an object.
    pub(crate) fn works(&self, codec: &Codec, message: &Call) -> bool {
        self.context.with(|ctx| {
            let function = self.function.clone().restore(&ctx).unwrap();
            decode(&ctx, &function, codec, message).is_some_and(|json| json.starts_with('{'))
        })
    }
}

/// Runs a message in a new runtime, which first evaluates `before` and the codec.
pub(crate) fn fresh(codec: &Codec, before: &str, message: &Call) {
    let context = Context::full(&Runtime::new().unwrap()).unwrap();
    context.with(|ctx| {
        evaluate(&ctx, PRELUDE).unwrap();
        if !before.is_empty() {
            evaluate(&ctx, before).unwrap();
        }
        evaluate(&ctx, &codec.script).unwrap();
        let function = look_up(&ctx, codec).unwrap();
        decode(&ctx, &function, codec, message).unwrap()
    });
}

fn evaluate(ctx: &Ctx<'_>, text: &str) -> Option<()> {
    let mut options = EvalOptions::default();
    options.strict = false;
    match ctx.eval_with_options::<Value<'_>, _>(text, options) {
        Ok(_) => Some(()),
        Err(_) => {
            ctx.catch();
            None
        }
    }
}

fn look_up<'js>(ctx: &Ctx<'js>, codec: &Codec) -> Option<Function<'js>> {
    ctx.eval(codec.function_name()).ok()
}

/// The result as JSON; `None` if the function throws or returns nothing.
fn decode<'js>(ctx: &Ctx<'js>, function: &Function<'js>, codec: &Codec, message: &Call) -> Option<String> {
    let bytes = message.payload.clone().into_js(ctx).ok()?;
    if codec.reads_globals {
        ctx.globals().set("payload", &bytes).ok()?;
        ctx.globals().set("port", message.port).ok()?;
    }
    let returned: rquickjs::Result<Value<'js>> = match codec.dialect {
        Dialect::V2 => function.call((bytes, message.port)),
        Dialect::ChirpStack3 => function.call((message.port, bytes, Object::new(ctx.clone()).ok()?)),
        Dialect::Ts013 => {
            let input = Object::new(ctx.clone()).ok()?;
            input.set("bytes", bytes).ok()?;
            input.set("fPort", message.port).ok()?;
            function.call((input,))
        }
    };
    let Ok(mut fields) = returned else {
        ctx.catch();
        return None;
    };
    if codec.dialect == Dialect::Ts013 {
        fields = fields.as_object()?.get("data").ok()?;
    }
    ctx.json_stringify(fields).ok()??.to_string().ok()
}
