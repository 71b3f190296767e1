# What we change in QuickJS; `quickjs-cc.sh` applies it and refuses to go on unless every edit has found its place.

# Its stack guard compiles to "no limit" under WASI, and deep recursion would end in a trap without a line. The shadow
# stack that the guard measures exists here like anywhere else.
/^static void update_stack_limit/,/^}/ s/#if defined(__wasi__)/#if 0 \/\* edit \*\//

# It asks whether to go on every 10 000 steps; asking more often, a script that is out of fuel ends with a line rather
# than with a trap.
s/^#define JS_INTERRUPT_COUNTER_INIT 10000$/#define JS_INTERRUPT_COUNTER_INIT 1000 \/\* edit \*\//

# A script that is out of fuel is blamed on the step before the target of the jump at which it was asked; so go on a
# little, over steps that have no line of their own.
s/if (unlikely(js_poll_interrupts(ctx)))/if (unlikely(js_poll_interrupts(ctx) \&\& (pc += 3))) \/* edit *\//

# Every call counts down to that question; beside the other static data, as each realm lies on pages of its own.
s/^static no_inline __exception int __js_poll_interrupts(JSContext \*ctx)$/extern int airlock_interrupt_counter; \/* edit *\/\
&/
s/^    ctx->interrupt_counter = JS_INTERRUPT_COUNTER_INIT;/    airlock_interrupt_counter = JS_INTERRUPT_COUNTER_INIT; \/* edit *\//
s/^    if (unlikely(--ctx->interrupt_counter <= 0)) {/    if (unlikely(--airlock_interrupt_counter <= 0)) { \/* edit *\//

# Only an error knows where it was made. For all else that is thrown the guest asks for the place, which is that of the
# last throw.
/^        CASE(OP_throw):$/ {
s/$/ { \/* edit *\/ extern void guest_note_throw(JSContext *);/
a\
            if (!JS_IsError(sp[-1])) { sf->cur_pc = pc; guest_note_throw(ctx); } }
}

# Its objects start with room for two properties and grow by half, which copies the shape of a typical result five times.
s/^#define JS_PROP_INITIAL_SIZE 2$/#define JS_PROP_INITIAL_SIZE 4 \/* edit *\//
s/^    new_size = max_int(count, sh->prop_size \* 3 \/ 2);/    new_size = max_int(count, sh->prop_size * 2); \/* edit *\//

# It reaches its allocator by four pointers and asks for the size of every block again. Ours is called by name and counts
# what is held itself (js/allocation.rs).
s/^    force_gc = ((rt->malloc_state.malloc_size + size) >$/extern size_t airlock_held_bytes; force_gc = ((airlock_held_bytes + size) > \/* edit *\//
s/^        rt->malloc_gc_threshold = rt->malloc_state.malloc_size +$/rt->malloc_gc_threshold = airlock_held_bytes + \/* edit *\//
s/^            (rt->malloc_state.malloc_size >> 1);$/(airlock_held_bytes >> 1); \/* edit *\//
/^void \*js_calloc_rt(/,/^}/ c\
extern void *airlock_js_calloc(size_t count, size_t size); /* edit */\
void *js_calloc_rt(JSRuntime *rt, size_t count, size_t size) { return airlock_js_calloc(count, size); }
/^void \*js_malloc_rt(/,/^}/ c\
extern void *airlock_js_malloc(size_t size); /* edit */\
void *js_malloc_rt(JSRuntime *rt, size_t size) { return unlikely(size == 0) ? NULL : airlock_js_malloc(size); }
/^void js_free_rt(/,/^}/ c\
extern void airlock_js_free(void *ptr); /* edit */\
void js_free_rt(JSRuntime *rt, void *ptr) { if (ptr) airlock_js_free(ptr); }
/^void \*js_realloc_rt(/,/^}/ c\
extern void *airlock_js_realloc(void *ptr, size_t size); /* edit */\
void *js_realloc_rt(JSRuntime *rt, void *ptr, size_t size)\
{\
    if (!ptr)\
        return js_malloc_rt(rt, size);\
    if (unlikely(size == 0)) {\
        js_free_rt(rt, ptr);\
        return NULL;\
    }\
    return airlock_js_realloc(ptr, size);\
}
/^size_t js_malloc_usable_size_rt(/,/^}/ c\
size_t js_malloc_usable_size_rt(JSRuntime *rt, const void *ptr) { return malloc_usable_size((void *)ptr); /* edit */ }

# What lies in the image lives for ever, so nothing of it is counted: a message would dirty a dozen pages by counting up
# and down again. Variables keep their counts. `airlock_seal` says where the image ends, and takes it out of
# the list that the garbage collector walks; what is reachable from the image alone keeps the counts it has from there.
/^static JSValue js_dup(JSValueConst v)$/ i\
/* The end of the image; what lies below is neither counted nor freed. */\
static uintptr_t airlock_sealed_end; /* edit */\
#define airlock_is_sealed(p) ((uintptr_t)(p) < airlock_sealed_end)\
static struct list_head airlock_sealed = { &airlock_sealed, &airlock_sealed };\
void airlock_seal(JSRuntime *rt, uintptr_t end)\
{\
    struct list_head *list = &rt->gc_obj_list;\
    airlock_sealed_end = end;\
    if (!list_empty(list)) {\
        airlock_sealed.prev->next = list->next;\
        list->next->prev = airlock_sealed.prev;\
        list->prev->next = &airlock_sealed;\
        airlock_sealed.prev = list->prev;\
        init_list_head(list);\
    }\
}\

/^static JSValue js_dup(JSValueConst v)$/,/^}/ s/^        JS_REF_COUNT(p)++;/        if (!airlock_is_sealed(p)) JS_REF_COUNT(p)++; \/* edit *\//
/^void JS_FreeValueRT(/,/^}/ s/^        if (--JS_REF_COUNT(p) <= 0) {/        if (!airlock_is_sealed(p) \&\& --JS_REF_COUNT(p) <= 0) { \/* edit *\//
/^static inline void js_free_string(JSRuntime/,/^}/ s/^    if (--JS_REF_COUNT(str) <= 0)/    if (!airlock_is_sealed(str) \&\& --JS_REF_COUNT(str) <= 0) \/* edit *\//
/^JSAtom JS_DupAtomRT(/,/^}/ s/^        JS_REF_COUNT(p)++;/        if (!airlock_is_sealed(p)) JS_REF_COUNT(p)++; \/* edit *\//
/^JSAtom JS_DupAtom(/,/^}/ s/^        JS_REF_COUNT(p)++;/        if (!airlock_is_sealed(p)) JS_REF_COUNT(p)++; \/* edit *\//
/^static void __JS_FreeAtom(/,/^}/ s/^    if (--JS_REF_COUNT(p) > 0)/    if (airlock_is_sealed(p) || --JS_REF_COUNT(p) > 0) \/* edit *\//
s/^            if (__JS_AtomIsConst(i))$/            if (__JS_AtomIsConst(i) \&\& !airlock_is_sealed(str)) \/* edit *\//
s/^                if (!__JS_AtomIsConst(i))$/                if (!__JS_AtomIsConst(i) \&\& !airlock_is_sealed(p)) \/* edit *\//
s/^    if (JS_REF_COUNT(p1) == 1 && p1->is_wide_char == p2->is_wide_char$/    if (!airlock_is_sealed(p1) \&\& JS_REF_COUNT(p1) == 1 \&\& p1->is_wide_char == p2->is_wide_char \/* edit *\//
# A rope in the image keeps its flat text for the rest of a message, as one of the message does.
s/^    if (JS_REF_COUNT(r) > 1) {/    if (airlock_is_sealed(r) || JS_REF_COUNT(r) > 1) { \/* edit *\//
/^static void gc_decref_child(/,/^}/ s/^    assert(JS_REF_COUNT(p) > 0);/    if (airlock_is_sealed(p)) return; \/* edit *\/ assert(JS_REF_COUNT(p) > 0);/
/^static void gc_scan_incref_child(/,/^}/ s/^    JS_REF_COUNT(p)++;/    if (airlock_is_sealed(p)) return; \/* edit *\/ JS_REF_COUNT(p)++;/
/^static void gc_scan_incref_child2(/,/^}/ s/^    JS_REF_COUNT(p)++;/    if (airlock_is_sealed(p)) return; \/* edit *\/ JS_REF_COUNT(p)++;/
/^static JSShape \*js_dup_shape(/,/^}/ s/^    JS_REF_COUNT(sh)++;/    if (!airlock_is_sealed(sh)) JS_REF_COUNT(sh)++; \/* edit *\//
/^static void js_free_shape(/,/^}/ s/^    if (unlikely(--JS_REF_COUNT(sh) <= 0)) {/    if (!airlock_is_sealed(sh) \&\& unlikely(--JS_REF_COUNT(sh) <= 0)) { \/* edit *\//
s/^        } else if (JS_REF_COUNT(sh) != 1) {/        } else if (airlock_is_sealed(sh) || JS_REF_COUNT(sh) != 1) { \/* edit *\//
s/^        if (JS_REF_COUNT(sh) != 1) {/        if (airlock_is_sealed(sh) || JS_REF_COUNT(sh) != 1) { \/* edit *\//

# Its table of shapes has three pages, of which a message would change one with nearly each shape that it makes. So the
# shapes of a message are in a small table of their own, beside the other static data. `airlock_seal_shapes` moves those of
# sources into the large one.
/^    \/\* resize the shape hash table if necessary \*\/$/,/^    }$/ c\
    (void)rt; /* edit */
/^static void js_shape_hash_link(/ i\
extern JSShape *airlock_shapes[64]; /* edit */\
#define airlock_new_shapes(hash) (&airlock_shapes[get_shape_hash(hash, 6)])\

/^static void js_shape_hash_link(/,/^}/ c\
static void js_shape_hash_link(JSRuntime *rt, JSShape *sh) /* edit */\
{\
    JSShape **head = airlock_new_shapes(sh->hash);\
    sh->shape_hash_next = *head;\
    *head = sh;\
}
/^static void js_shape_hash_unlink(/,/^}/ c\
static void js_shape_hash_unlink(JSRuntime *rt, JSShape *sh) /* edit */\
{\
    JSShape **psh = airlock_new_shapes(sh->hash);\
    while (*psh != sh)\
        psh = &(*psh)->shape_hash_next;\
    *psh = sh->shape_hash_next;\
}\
\
void airlock_seal_shapes(JSRuntime *rt)\
{\
    for (int i = 0; i < countof(airlock_shapes); i++) {\
        for (JSShape *sh = airlock_shapes[i], *next; sh; sh = next) {\
            JSShape **head;\
            next = sh->shape_hash_next;\
            /* A larger table has all shapes on other lists, on pages that sources share; so they may fill it. */\
            if ((airlock_sealed_end ? 1 : 2) * (rt->shape_hash_count + 1) > rt->shape_hash_size)\
                resize_shape_hash(rt, rt->shape_hash_bits + 1);\
            head = &rt->shape_hash[get_shape_hash(sh->hash, rt->shape_hash_bits)];\
            sh->shape_hash_next = *head;\
            *head = sh;\
            rt->shape_hash_count++;\
        }\
        airlock_shapes[i] = NULL;\
    }\
}\
\
static inline JSShape *airlock_first_shape(JSRuntime *rt, uint32_t hash)\
{\
    JSShape *sh = rt->shape_hash[get_shape_hash(hash, rt->shape_hash_bits)];\
    return sh ? sh : *airlock_new_shapes(hash);\
}\
\
static inline JSShape *airlock_next_shape(JSShape *sh, uint32_t hash)\
{\
    JSShape *next = sh->shape_hash_next;\
    return next || !airlock_is_sealed(sh) ? next : *airlock_new_shapes(hash);\
}
/^static JSShape \*find_hashed_shape_proto(/,/^}/ {
s/^    for(sh1 = rt->shape_hash\[h1\]; .*/    for(sh1 = airlock_first_shape(rt, h); sh1 != NULL; sh1 = airlock_next_shape(sh1, h)) { \/* edit *\//
s/, h1;/;/
/^    h1 = /d
}
/^static JSShape \*find_hashed_shape_prop(/,/^}/ {
s/^            for(i = 0; i < n; i++) {/            for(i = sh1->airlock_parent == sh ? n : 0; i < n; i++) { \/* edit *\//
s/^    for(sh1 = rt->shape_hash\[h1\]; .*/    for(sh1 = airlock_first_shape(rt, h); sh1 != NULL; sh1 = airlock_next_shape(sh1, h)) { \/* edit *\//
s/, h1, /, /
/^    h1 = /d
}

# A shape that `shapes.c` made knows the one that it extends, so that their properties need not be compared.
/^struct JSShape {/,/^};/ s/^    JSObject \*proto;/&\n    JSShape *airlock_parent; \/* edit *\//
/^static inline JSShape \*js_new_shape_nohash(/,/^}/ s/^    sh->proto = proto;/&\n    sh->airlock_parent = NULL; \/* edit *\//
/^static JSShape \*js_clone_shape(/,/^}/ s/^    sh->is_hashed = false;/&\n    sh->airlock_parent = NULL; \/* edit *\//

# The fields of object literals nearly always go to a plain object that does not have them yet. Returns 0 for any other,
# and -1 without memory.
/^static no_inline __exception int convert_fast_array_to_array(/ i\
static inline int airlock_add_field(JSContext *ctx, JSValueConst object, JSAtom atom, JSValue value) /* edit */\
{\
    JSObject *p = JS_VALUE_GET_OBJ(object);\
    JSProperty *pr;\
    if (JS_VALUE_GET_TAG(object) != JS_TAG_OBJECT || p->class_id != JS_CLASS_OBJECT || p->is_exotic || !p->extensible)\
        return 0;\
    if (find_own_property1(p, atom))\
        return 0;\
    pr = add_property(ctx, p, atom, JS_PROP_C_W_E);\
    if (!pr)\
        return -1;\
    pr->u.value = value;\
    return 1;\
}\

/^        CASE(OP_define_field):$/,/^            BREAK;/ s/^                pc += 4;$/&\
                if (likely((ret = airlock_add_field(ctx, sp[-2], atom, sp[-1])) != 0)) { \/* edit *\/\
                    if (unlikely(ret < 0))\
                        goto exception;\
                    sp--;\
                    BREAK;\
                }/
