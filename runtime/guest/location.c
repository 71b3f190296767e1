/* Finds the position of a running script, and of where an error was thrown. `quickjs-cc.sh` appends this file to quickjs.c, because it needs QuickJS's
   private structures. It only reads, because it also runs after a trap, when any structure may be inconsistent. */

/* Line and column, from 1, of the innermost call of a function from the source `file`; false if there is none. */
bool guest_location(JSContext *ctx, JSAtom file, int *line, int *column)
{
    for (JSStackFrame *frame = ctx->rt->current_stack_frame; frame; frame = frame->prev_frame) {
        JSObject *function = JS_VALUE_GET_OBJ(frame->cur_func);
        if (!js_class_has_bytecode(function->class_id))
            continue;
        JSFunctionBytecode *code = function->u.func.function_bytecode;
        if (code->filename != file || !frame->cur_pc)
            continue;
        *line = find_line_num(ctx, code, frame->cur_pc - code->byte_code_buf - 1, column);
        return *line > 0;
    }
    return false;
}

/* The stack trace that an error got when it was thrown; undefined for any other value. Runs no script: for scripts it is
   behind an accessor of `Error.prototype`. */
JSValue guest_error_stack(JSValueConst value)
{
    if (JS_VALUE_GET_TAG(value) != JS_TAG_OBJECT || JS_VALUE_GET_OBJ(value)->class_id != JS_CLASS_ERROR)
        return JS_UNDEFINED;
    return js_dup(JS_VALUE_GET_OBJ(value)->u.object_data);
}
