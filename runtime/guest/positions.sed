# Where QuickJS says that an error is: at the token that is wrong, and at the expression that threw, as V8 says it.
# `quickjs-cc.sh` applies it after `quickjs.sed`.

# Columns count from the start of the line before the token, in bytes, and stand still between tokens without a space.
/^    const uint8_t \*mark; \/\/ first token character/ a\
    const uint8_t *column_at, *column_eol; /* edit */ /* the last place whose column was asked for, and its line */\
    int column;\
    int blamed_line, blamed_column; /* what an error is blamed on, if not on the current token */
/^int JS_PRINTF_FORMAT_ATTR(2, 3) js_parse_error(JSParseState/ i\
static int airlock_column(JSParseState *s, const uint8_t *at); /* edit */\
static void airlock_blame(JSParseState *s, int line, int column);\
static void airlock_forget_stack(JSContext *ctx);\
static void airlock_blame_last(JSParseState *s);\
static void airlock_call_position(JSParseState *s, int *line, int *column);
/^static __exception int next_token(JSParseState \*s)$/,/^}/ s/^    s->token.col_num = max_int(1, s->mark - s->eol);/    s->token.col_num = airlock_column(s, s->token.ptr); \/* edit *\//
s/^    s->eol = s->buf_ptr;/    s->eol = s->buf_ptr - 1; \/* edit *\//

# An error is at the place that was reached in the text, which is the end of the next token.
/^int JS_PRINTF_FORMAT_ATTR(2, 3) js_parse_error(JSParseState/,/^}/ {
s/^    int backtrace_flags;/&\
    int line = s->blamed_line ? s->blamed_line : s->token.line_num; \/* edit *\/\
    int column = s->blamed_line ? s->blamed_column : s->token.ptr ? airlock_column(s, s->token.ptr) : 1;/
s/s->token.line_num, err_col_num, backtrace_flags/line, column, backtrace_flags \/* edit *\//
}
# An open template ends with the text.
s/^    js_parse_error(s, "unexpected end of string");$/    if (p >= s->buf_end) airlock_blame(s, s->line_num, airlock_column(s, s->buf_end)); \/* edit *\/\
&/
s/^        return js_parse_error(s, "unexpected token in expression/        if (s->token.val == TOK_EOF) return js_parse_error(s, "Unexpected end of input"); \/* edit *\/\
&/
# A regular expression has the trace of what reads it, which is native.
s/^                \/\* add the line number info \*\//                airlock_forget_stack(s->ctx); \/* edit *\//
# These have already passed the token that they are about.
s/^\( *\)\(return \)*js_parse_error(s, "\(invalid redefinition of lexical\|invalid redefinition of parameter\|invalid redefinition of a variable\|invalid redefinition of global\|missing initializer for variable\|line terminator not allowed after throw\|expecting catch or finally\|expected '}' after template\)/\1airlock_blame_last(s); \/* edit *\/\
&/
s/^ *return js_parse_error(s, "cannot delete a direct reference in strict mode/airlock_blame_last(s); \/* edit *\/\
&/
s/^ *return js_parse_error(s, "\(continue must be inside\|break must be inside\|super() is only\|'super' is only\).*/{ airlock_blame_last(s); \/* edit *\/\
& }/
# What cannot be assigned to begins before the operator.
/^static __exception int get_lvalue(JSParseState/,/^}/ s/^    \*popcode = opcode;/    s->blamed_line = 0; \/* edit *\/\
&/
/^static __exception int js_parse_assign_expr2(JSParseState \*s, int parse_flags)$/,/^}/ {
s/^    int opcode, op, scope;/&\
    int line = s->token.line_num, column = s->token.col_num, op_line, op_column; \/* edit *\//
s/^    op = s->token.val;/    op = s->token.val, op_line = s->token.line_num, op_column = s->token.col_num; \/* edit *\//
s/^        if (get_lvalue(s,/        airlock_blame(s, line, column); \/* edit *\/\
&/
}

# Names, properties, elements.
s/^                (int)(s->token.ptr - s->line_start) + 1;/                s->token.col_num; \/* edit *\//
s/if (next_token(s)) { \/\* update line number before emitting code \*\//emit_source_loc(s); \/* edit *\/ &/
/^                    emit_op(s, OP_get_field);$/ {
N
s/.*\n *emit_atom(s, s->token.u.ident.atom);/emit_source_loc(s); \/* edit *\/\
&/
}
s/^                \/\* private class field \*\//emit_source_loc(s); \/* edit *\/\
&/
/^static __exception int js_parse_postfix_expr(JSParseState \*s, int parse_flags)$/,/^}/ {
s/^    case TOK_THIS:/& emit_source_loc(s); \/* edit *\//
s/^            prev_op = get_prev_opcode(fd);/& int at_line = s->token.line_num, at_column = s->token.col_num; \/* edit *\//
s/^                emit_op(s, OP_get_array_el);/emit_source_loc_at(s, at_line, at_column); \/* edit *\/ &/
}

# A call is at the name before its parenthesis, or at the parenthesis; not at its last argument. `new` is at itself.
/^static __exception int js_parse_postfix_expr(JSParseState \*s, int parse_flags)$/,/^}/ {
s/^    bool accept_lparen = /    int line = s->token.line_num, column = s->token.col_num; \/* edit *\/\
&/
s/^        bool has_optional_chain = false;/& int call_line = s->token.line_num, call_column = s->token.col_num; \/* edit *\//
s/^        parse_func_call:/& airlock_call_position(s, \&call_line, \&call_column); \/* edit *\//
/^            parse_func_call2:/ {
n
s/emit_source_loc(s);/; \/* edit *\//
}
s/^            emit_source_loc(s);$/            (void)0; \/* edit *\//
s/^                emit_op(s, OP_dup);$/                emit_source_loc_at(s, line, column); \/* edit *\/\
&/
s/^            if (call_type == FUNC_CALL_NORMAL) {/            if (call_type == FUNC_CALL_NEW) call_line = line, call_column = column; \/* edit *\/\
&/
s/^                        emit_op(s, OP_append);/                        emit_source_loc_at(s, call_line, call_column); \/* edit *\/\
&/
s/^                \/\* apply function call \*\//                emit_source_loc_at(s, call_line, call_column); \/* edit *\//
s/^            emit_func_call:/&  emit_source_loc_at(s, call_line, call_column); \/* edit *\//
s/^ *\/\* accept a trailing comma before the ')' \*\//if (s->token.val != ',') airlock_blame_last(s); \/* edit *\//
}

# Operators are at themselves, not at what follows them.
/^static __exception int js_parse_expr_binary(JSParseState \*s, int level,$/,/^}/ {
s/^        op = s->token.val;/& int line = s->token.line_num, column = s->token.col_num; \/* edit *\//
s/^        emit_source_loc(s);$/        ; \/* edit *\//
s/^        emit_op(s, opcode);/        emit_source_loc_at(s, line, column); \/* edit *\/\
&/
}
/^static __exception int js_parse_unary(JSParseState \*s, int parse_flags)$/,/^}/ {
s/^    int op;/    int op, line = s->token.line_num, column = s->token.col_num; \/* edit *\//
s/^        switch(op) {/        emit_source_loc_at(s, line, column); \/* edit *\/\
&/
s/^            if (get_lvalue(s,/            airlock_blame(s, line, column); \/* edit *\/\
&/
s/^            emit_op(s, OP_dec + op - TOK_DEC);/            emit_source_loc_at(s, line, column); \/* edit *\/\
&/
s/^            emit_op(s, OP_post_dec + op - TOK_DEC);/            emit_source_loc(s); \/* edit *\/\
&/
s/^        if (s->token.val == TOK_POW) {/& int pow_line = s->token.line_num, pow_column = s->token.col_num; \/* edit *\//
s/^            emit_op(s, OP_pow);/            emit_source_loc_at(s, pow_line, pow_column); \/* edit *\/\
&/
}
/^static __exception int js_parse_delete(JSParseState \*s)$/,/^}/ {
s/^    int opcode;/    int opcode, line = s->token.line_num, column = s->token.col_num; \/* edit *\//
s/^\( *\)emit_op(s, OP_delete);/\1emit_source_loc_at(s, line, column); \/* edit *\/\
&/
}
/^static __exception int js_parse_assign_expr2(JSParseState \*s, int parse_flags)$/,/^}/ {
/^        if (op == '=' && opcode == OP_get_array_el) {/ {
N
/obj val key/ s/^/        emit_source_loc_at(s, op_line, op_column); \/* edit *\/\
/
}
s/^        switch(depth_lvalue) {/        emit_source_loc_at(s, op_line, op_column); \/* edit *\/\
&/
}

# What is spread, looped over or taken apart.
/^static __exception int js_parse_array_literal(JSParseState \*s)$/,/^}/ {
/^        if (s->token.val == TOK_ELLIPSIS) {/ {
n
n
s/$/ emit_source_loc(s); \/* edit *\//
}
}
/^static __exception int js_parse_for_in_of(JSParseState \*s, int label_name,$/,/^}/ {
/^    if (is_for_of) {/ {
N
s/.*js_parse_assign_expr/    emit_source_loc(s); \/* edit *\/\
&/
}
s/^    emit_label(s, label_cont);/    emit_source_loc_at(s, source_line_num, source_col_num); \/* edit *\/\
&/
}
s/^        \/\* throw an exception if the value cannot be converted to an object \*\//        emit_source_loc(s); \/* edit *\//
/^static int js_parse_destructuring_element(JSParseState \*s, int tok,$/,/^}/ {
s/^    bool has_initializer;/    bool has_initializer; int iterated = -1; \/* edit *\//
s/^        emit_op(s, OP_for_of_start);/        iterated = s->cur_func->byte_code.size + 1; emit_source_loc_at(s, source_line_num, source_col_num); \/* edit *\/\
&/
s/^        emit_label(s, label_parse);/        if (iterated >= 0) put_u32(s->cur_func->byte_code.buf + iterated, s->token.line_num), put_u32(s->cur_func->byte_code.buf + iterated + 4, s->token.col_num); \/* edit *\/\
&/
}

# Statements: what has no place of its own, such as a value that is returned, belongs to their first line.
s/^    switch(tok = s->token.val) {$/    emit_source_loc(s); int line = s->token.line_num, column = s->token.col_num; \/* edit *\/\
&/
/^    case TOK_THROW:$/,/^        break;/ {
s/^        emit_source_loc(s);$/        ; \/* edit *\//
s/^        emit_op(s, OP_throw);/        emit_source_loc_at(s, line, column); \/* edit *\/ &/
}

# An error of a class that extends `Error` is at the `new` of that class, not at the `super` of its constructor.
/^    \/\* skip the Error() function in the backtrace \*\/$/ {
n
s/JS_UNDEFINED, NULL, 0, 0, JS_BACKTRACE_FLAG_SKIP_FIRST_LEVEL/new_target, NULL, 0, 0, JS_BACKTRACE_FLAG_SKIP_FIRST_LEVEL | JS_BACKTRACE_FLAG_FILTER_FUNC \/* edit *\//
}

# Many a character that no script may have is not seen: it is named.
s/^                    js_parse_error(s, "unexpected character");/                    js_parse_error(s, "unexpected character U+%04X", c); \/* edit *\//
