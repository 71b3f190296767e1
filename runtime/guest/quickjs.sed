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
s/^static no_inline __exception int __js_poll_interrupts(JSContext \*ctx)$/static int airlock_interrupt_counter = JS_INTERRUPT_COUNTER_INIT; \/* edit *\/\
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
