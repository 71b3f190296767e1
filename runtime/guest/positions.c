/* Columns as V8 counts them, and what an error is blamed on. `quickjs-cc.sh` appends this file to quickjs.c, because it
   needs the private structures of the parser; `positions.sed` calls it from there. */

/* How many UTF-16 units start with this byte of UTF-8. */
static int units(uint8_t byte)
{
    return ((byte & 0xc0) != 0x80) + (byte >= 0xf0);
}

/* The column of `at`, from 1. It counts on from the last place that was asked for, also backwards: the parser looks
   ahead and returns, and sources without line breaks would otherwise take quadratic time. */
static int airlock_column(JSParseState *s, const uint8_t *at)
{
    const uint8_t *from = s->column_at;
    const uint8_t *start = s->eol + 1;
    int column = s->column;
    if (at < start) {
        /* A token of several lines: back to the line on which it starts. */
        for (start = at; start > s->buf_start && start[-1] != '\n' && start[-1] != '\r'; start--)
            ;
        from = NULL;
    }
    if (!from || s->column_eol != s->eol) {
        from = start;
        column = 1;
    }
    while (from < at)
        column += units(*from++);
    while (from > at)
        column -= units(*--from);
    s->column_at = at > s->eol ? at : NULL;
    s->column_eol = s->eol;
    s->column = column;
    return column;
}

static void airlock_blame(JSParseState *s, int line, int column)
{
    s->blamed_line = line;
    s->blamed_column = column;
}

/* Blames an error on the token before the current one. */
static void airlock_blame_last(JSParseState *s)
{
    airlock_blame(s, s->last_line_num, s->last_col_num);
}

/* At the parenthesis of a call: the position of the name before it, or else of the parenthesis. */
static void airlock_call_position(JSParseState *s, int *line, int *column)
{
    uint8_t before = s->last_ptr[-1];
    bool is_name = before >= 0x80 || lre_js_is_ident_next(before);
    *line = is_name ? s->last_line_num : s->token.line_num;
    *column = is_name ? s->last_col_num : s->token.col_num;
}

/* Lets the pending error get another stack trace. */
static void airlock_forget_stack(JSContext *ctx)
{
    JSValue error = ctx->rt->current_exception;
    if (JS_VALUE_GET_TAG(error) == JS_TAG_OBJECT && JS_VALUE_GET_OBJ(error)->class_id == JS_CLASS_ERROR) {
        JS_FreeValue(ctx, JS_VALUE_GET_OBJ(error)->u.object_data);
        JS_VALUE_GET_OBJ(error)->u.object_data = JS_UNDEFINED;
    }
}
