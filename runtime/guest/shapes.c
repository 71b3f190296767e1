/* Creates the shapes of objects that scripts will build, so that messages find them in the image instead of making them.
   `quickjs-cc.sh` appends this file to quickjs.c, because it needs QuickJS's private structures.

   The names are read from bytecode: those of an object literal, and those assigned to a local variable that holds one, in
   the order of the source. A script that adds them in another order makes its own shapes; nobody can tell the difference
   but by fuel and memory. */

enum {
    OBJECTS_MAX = 64,
    NAMES_MAX = 48,
    LOCALS_MAX = 128,
    STACK_MAX = 64,
    LABELS_MAX = 64,
    /* The most memory for all shapes. */
    SHAPE_BYTES_MAX = 8192,
};

/* The names of one object, in the order in which they are added. */
typedef struct {
    int count;
    JSAtom names[NAMES_MAX];
} ObjectNames;

/* What is on the stack or in a variable: an object (its index plus one), a constant name, or neither. */
typedef struct {
    uint8_t object;
    JSAtom name;
} Operand;

/* A pass over the bytecode of one function, which follows jumps only for the depth of the stack behind them. */
typedef struct {
    ObjectNames objects[OBJECTS_MAX];
    int object_count;
    Operand locals[LOCALS_MAX];
    Operand stack[STACK_MAX];
    int depth;
    struct {
        uint32_t offset;
        int depth;
    } labels[LABELS_MAX];
    int label_count;
    /* The offset of the nearest label. */
    uint32_t next_label;
} ObjectWalk;

static const Operand unknown_operand = { 0, JS_ATOM_NULL };

static void note_label(ObjectWalk *walk, uint32_t offset, int depth)
{
    /* Once for all jumps to it, such as the `break`s of a `switch`. */
    for (int i = 0; i < walk->label_count; i++) {
        if (walk->labels[i].offset == offset)
            return;
    }
    if (walk->label_count < LABELS_MAX) {
        walk->labels[walk->label_count].offset = offset;
        walk->labels[walk->label_count++].depth = depth;
        walk->next_label = min_uint32(walk->next_label, offset);
    }
}

/* Sets the depth at a label that an earlier jump named. */
static void reach_label(ObjectWalk *walk, uint32_t offset)
{
    int kept = 0;
    if (offset < walk->next_label)
        return;
    walk->next_label = UINT32_MAX;
    for (int i = 0; i < walk->label_count; i++) {
        if (walk->labels[i].offset == offset) {
            while (walk->depth < walk->labels[i].depth)
                walk->stack[walk->depth++] = unknown_operand;
            walk->depth = walk->labels[i].depth;
        } else if (walk->labels[i].offset > offset) {
            walk->labels[kept++] = walk->labels[i];
            walk->next_label = min_uint32(walk->next_label, walk->labels[i].offset);
        }
    }
    walk->label_count = kept;
}

static void add_name(ObjectWalk *walk, Operand to, JSAtom name)
{
    ObjectNames *object;
    if (!to.object || name == JS_ATOM_NULL)
        return;
    object = &walk->objects[to.object - 1];
    for (int i = 0; i < object->count; i++) {
        if (object->names[i] == name)
            return;
    }
    if (object->count < NAMES_MAX)
        object->names[object->count++] = name;
}

/* The operand at `from_top` below the top of the stack. */
static Operand operand(const ObjectWalk *walk, int from_top)
{
    return walk->depth > from_top ? walk->stack[walk->depth - 1 - from_top] : unknown_operand;
}

/* The local variable that a step reads or writes; -1 for none. */
static int local_of(const uint8_t *pc)
{
    switch (*pc) {
    case OP_get_loc: case OP_put_loc: case OP_set_loc: case OP_get_loc_check: case OP_put_loc_check:
    case OP_put_loc_check_init:
        return get_u16(pc + 1);
    case OP_get_loc8: case OP_put_loc8: case OP_set_loc8:
        return pc[1];
    case OP_get_loc0: case OP_get_loc1: case OP_get_loc2: case OP_get_loc3:
        return *pc - OP_get_loc0;
    case OP_put_loc0: case OP_put_loc1: case OP_put_loc2: case OP_put_loc3:
        return *pc - OP_put_loc0;
    case OP_set_loc0: case OP_set_loc1: case OP_set_loc2: case OP_set_loc3:
        return *pc - OP_set_loc0;
    default:
        return -1;
    }
}

/* What a step leaves on top of the stack, if it is an object or a name; takes note of the names that it adds. */
static Operand follow_step(ObjectWalk *walk, const uint8_t *pc)
{
    int local = local_of(pc);
    if (local >= 0 && local < LOCALS_MAX) {
        if (short_opcode_info(*pc).n_pop)
            walk->locals[local] = operand(walk, 0);
        return walk->locals[local];
    }
    switch (*pc) {
    case OP_object:
        if (walk->object_count >= OBJECTS_MAX)
            return unknown_operand;
        walk->objects[walk->object_count++].count = 0;
        return (Operand){ walk->object_count, JS_ATOM_NULL };
    case OP_push_atom_value:
        return (Operand){ 0, get_u32(pc + 1) };
    case OP_define_field:
        add_name(walk, operand(walk, 1), get_u32(pc + 1));
        return operand(walk, 1);
    case OP_put_field:
        add_name(walk, operand(walk, 1), get_u32(pc + 1));
        return unknown_operand;
    case OP_put_array_el:
        add_name(walk, operand(walk, 2), operand(walk, 1).name);
        return unknown_operand;
    default:
        return unknown_operand;
    }
}

static bool ends_path(uint8_t op)
{
    switch (op) {
    case OP_tail_call: case OP_tail_call_method: case OP_return: case OP_return_undef: case OP_return_async:
    case OP_throw: case OP_throw_error: case OP_ret: case OP_goto: case OP_goto8: case OP_goto16:
        return true;
    default:
        return false;
    }
}

/* The target of a jump; 0 for other steps. */
static uint32_t jump_target(const uint8_t *pc, uint32_t offset)
{
    switch (*pc) {
    case OP_goto: case OP_if_false: case OP_if_true: case OP_catch:
        return offset + 1 + get_u32(pc + 1);
    case OP_goto16:
        return offset + 1 + (int16_t)get_u16(pc + 1);
    case OP_goto8: case OP_if_false8: case OP_if_true8:
        return offset + 1 + (int8_t)pc[1];
    default:
        return 0;
    }
}

/* `obj a -> a obj a`, with `copied` operands above the copy of the last. */
static bool copy_last(ObjectWalk *walk, int copied)
{
    Operand *moved;
    if (walk->depth < copied || walk->depth >= STACK_MAX)
        return false;
    moved = &walk->stack[walk->depth - copied];
    memmove(moved + 1, moved, copied * sizeof(*moved));
    moved[0] = walk->stack[walk->depth++];
    return true;
}

/* Moves the operands as a step does. Returns false if the stack is deeper than is followed. */
static bool move_operands(ObjectWalk *walk, const uint8_t *pc)
{
    const JSOpCode *step = &short_opcode_info(*pc);
    Operand top;
    int popped = step->n_pop;
    if (*pc == OP_dup || *pc == OP_insert2 || *pc == OP_insert3)
        return copy_last(walk, step->n_pop);
    if (step->fmt == OP_FMT_npop || step->fmt == OP_FMT_npop_u16)
        popped += get_u16(pc + 1);
    else if (step->fmt == OP_FMT_npopx)
        popped += *pc - OP_call0;
    if (walk->depth < popped || walk->depth - popped + step->n_push > STACK_MAX)
        return false;
    top = follow_step(walk, pc);
    walk->depth -= popped;
    for (int i = 0; i < step->n_push; i++)
        walk->stack[walk->depth++] = unknown_operand;
    if (*pc == OP_get_loc0_loc1) {
        walk->stack[walk->depth - 2] = walk->locals[0];
        walk->stack[walk->depth - 1] = walk->locals[1];
    } else if (step->n_push) {
        walk->stack[walk->depth - 1] = top;
    }
    return true;
}

static void find_objects(ObjectWalk *walk, const JSFunctionBytecode *code)
{
    memset(walk->locals, 0, sizeof(walk->locals));
    walk->object_count = walk->depth = walk->label_count = 0;
    walk->next_label = UINT32_MAX;
    for (uint32_t offset = 0; offset < (uint32_t)code->byte_code_len;) {
        const uint8_t *pc = code->byte_code_buf + offset;
        uint32_t target = jump_target(pc, offset);
        reach_label(walk, offset);
        if (!move_operands(walk, pc))
            return;
        if (target > offset)
            note_label(walk, target, walk->depth);
        if (ends_path(*pc))
            walk->depth = 0;
        offset += short_opcode_info(*pc).size;
    }
}

/* The room that a shape of `count` properties has once it has grown to that. */
static int grown_size(int count)
{
    int size = JS_PROP_INITIAL_SIZE;
    while (size < count)
        size *= 2;
    return size;
}

/* The shape of an object with the first `count` names. NULL without memory. */
static JSShape *make_shape(JSContext *ctx, JSObject *proto, const ObjectNames *object, int count)
{
    int size = grown_size(count);
    JSShape *shape = js_new_shape2(ctx, proto, size, size);
    for (int i = 0; shape && i < count; i++) {
        if (add_shape_property(ctx, &shape, NULL, object->names[i], JS_PROP_C_W_E)) {
            js_free_shape(ctx->rt, shape);
            return NULL;
        }
    }
    return shape;
}

/* Makes the shapes through which an object goes as its names are added, as far as `room` bytes go. */
static bool make_shapes(JSContext *ctx, const ObjectNames *object, size_t *room)
{
    JSObject *proto = object_or_null(ctx->class_proto[JS_CLASS_OBJECT]);
    JSShape *shape = find_hashed_shape_proto(ctx->rt, proto);
    for (int count = 1; shape && count <= object->count; count++) {
        JSShape *next = find_hashed_shape_prop(ctx->rt, shape, object->names[count - 1], JS_PROP_C_W_E);
        if (!next) {
            size_t size = get_shape_size(grown_size(count), grown_size(count));
            if (*room < size)
                return false;
            *room -= size;
            next = make_shape(ctx, proto, object, count);
            if (!next) {
                JS_FreeValue(ctx, JS_GetException(ctx));
                return false;
            }
            next->airlock_parent = shape;
        }
        shape = next;
    }
    return true;
}

/* Makes the shapes of the objects that the functions of `files` build. They are never freed. */
void guest_make_shapes(JSRuntime *rt, const JSAtom *files, int file_count)
{
    ObjectWalk walk;
    size_t room = SHAPE_BYTES_MAX;
    struct list_head *at, *end = rt->gc_obj_list.prev;
    /* New shapes come behind `end` in this list. */
    for (at = rt->gc_obj_list.next; at != &rt->gc_obj_list; at = at->next) {
        JSGCObjectHeader *object = list_entry(at, JSGCObjectHeader, link);
        const JSFunctionBytecode *code = (const JSFunctionBytecode *)object;
        bool is_of_source = false;
        if (JS_GC_TYPE(object) == JS_GC_OBJ_TYPE_FUNCTION_BYTECODE) {
            for (int i = 0; i < file_count; i++)
                is_of_source |= code->filename == files[i];
        }
        if (is_of_source) {
            find_objects(&walk, code);
            for (int i = 0; i < walk.object_count; i++) {
                if (!make_shapes(code->realm, &walk.objects[i], &room))
                    return;
            }
        }
        if (at == end)
            return;
    }
}

/* Makes the shapes of an object that gets properties with these names, in this order. */
void guest_make_shape(JSContext *ctx, const JSAtom *names, int count)
{
    ObjectNames object = { .count = min_int(count, NAMES_MAX) };
    size_t room = SIZE_MAX;
    memcpy(object.names, names, object.count * sizeof(*names));
    make_shapes(ctx, &object, &room);
}
