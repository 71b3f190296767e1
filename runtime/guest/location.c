/* Finds the position of a running script. `quickjs-cc.sh` appends this file to quickjs.c, because it needs QuickJS's
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
