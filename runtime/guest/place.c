/* Where scripts are. Ours, appended to QuickJS by `quickjs-cc.sh`, because only QuickJS knows its frames. It only reads,
   so that it may be asked after a trap, when nothing can be trusted to be whole. */

/* Line and column, from 1, of the innermost call of a function whose text is called `file`; false if there is none. */
bool guest_place(JSContext *ctx, JSAtom file, int *line, int *column)
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
