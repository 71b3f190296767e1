/* Lists the steps of the bytecode of scripts, with their positions, for a host that counts them. `quickjs-cc.sh` appends
   this file to quickjs.c, because it needs QuickJS's private structures. */

/* What receives the list: `function` before the steps of each function. */
typedef struct {
    void (*function)(void *list, JSAtom file, JSAtom name, const uint8_t *code);
    void (*step)(void *list, uint32_t offset, int line, int column, bool is_branch);
    void *list;
} StepList;

/* Where the steps of a function are, read from its table of positions in one pass. */
typedef struct {
    const uint8_t *next, *end;
    uint32_t pc;
    int line, column, next_line, next_column;
} Positions;

/* Reads the next entry; it holds from `pc` on. */
static void read_position(Positions *positions)
{
    uint32_t distance;
    int change;
    uint8_t op;
    if (positions->next >= positions->end) {
        positions->pc = UINT32_MAX;
        return;
    }
    op = *positions->next++;
    if (op == 0) {
        positions->next += get_leb128(&distance, positions->next, positions->end);
        positions->pc += distance;
        positions->next += get_sleb128(&change, positions->next, positions->end);
        positions->next_line += change;
    } else {
        op -= PC2LINE_OP_FIRST;
        positions->pc += op / PC2LINE_RANGE;
        positions->next_line += op % PC2LINE_RANGE + PC2LINE_BASE;
    }
    positions->next += get_sleb128(&change, positions->next, positions->end);
    positions->next_column += change;
}

static bool is_branch(uint8_t op)
{
    return op == OP_if_false || op == OP_if_true || op == OP_if_false8 || op == OP_if_true8;
}

static void list_steps(const JSFunctionBytecode *code, const StepList *to)
{
    Positions positions = { code->pc2line_buf, code->pc2line_buf + code->pc2line_len, 0,
                            code->line_num, code->col_num, code->line_num, code->col_num };
    read_position(&positions);
    for (uint32_t offset = 0; offset < (uint32_t)code->byte_code_len;) {
        uint8_t op = code->byte_code_buf[offset];
        while (positions.pc <= offset) {
            positions.line = positions.next_line;
            positions.column = positions.next_column;
            read_position(&positions);
        }
        to->step(to->list, offset, positions.line, positions.column, is_branch(op));
        offset += short_opcode_info(op).size;
    }
}

static void list_functions(struct list_head *objects, const StepList *to)
{
    struct list_head *at;
    list_for_each(at, objects) {
        JSGCObjectHeader *object = list_entry(at, JSGCObjectHeader, link);
        if (JS_GC_TYPE(object) == JS_GC_OBJ_TYPE_FUNCTION_BYTECODE) {
            JSFunctionBytecode *code = (JSFunctionBytecode *)object;
            to->function(to->list, code->filename, code->func_name, code->byte_code_buf);
            list_steps(code, to);
        }
    }
}

/* Lists the steps of all functions, also of those that were sealed. */
void guest_list_steps(JSRuntime *rt, const StepList *to)
{
    list_functions(&airlock_sealed, to);
    list_functions(&rt->gc_obj_list, to);
}
