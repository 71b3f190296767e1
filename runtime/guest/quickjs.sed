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
extern size_t malloc_usable_size(const void *ptr); /* edit */\
size_t js_malloc_usable_size_rt(JSRuntime *rt, const void *ptr) { return malloc_usable_size(ptr); }

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

/^static JSValue js_dup(JSValueConst v)$/,/^}/ s/^        p->ref_count++;/        if (!airlock_is_sealed(p)) p->ref_count++; \/* edit *\//
/^void JS_FreeValueRT(/,/^}/ s/^        if (--p->ref_count <= 0) {/        if (!airlock_is_sealed(p) \&\& --p->ref_count <= 0) { \/* edit *\//
/^static inline void js_free_string(JSRuntime/,/^}/ s/^    if (--str->header.ref_count <= 0)/    if (!airlock_is_sealed(str) \&\& --str->header.ref_count <= 0) \/* edit *\//
/^JSAtom JS_DupAtomRT(/,/^}/ s/^        p->header.ref_count++;/        if (!airlock_is_sealed(p)) p->header.ref_count++; \/* edit *\//
/^JSAtom JS_DupAtom(/,/^}/ s/^        p->header.ref_count++;/        if (!airlock_is_sealed(p)) p->header.ref_count++; \/* edit *\//
/^static void __JS_FreeAtom(/,/^}/ s/^    if (--p->header.ref_count > 0)/    if (airlock_is_sealed(p) || --p->header.ref_count > 0) \/* edit *\//
s/^            if (__JS_AtomIsConst(i))$/            if (__JS_AtomIsConst(i) \&\& !airlock_is_sealed(str)) \/* edit *\//
s/^                if (!__JS_AtomIsConst(i))$/                if (!__JS_AtomIsConst(i) \&\& !airlock_is_sealed(p)) \/* edit *\//
s/^    if (p1->header.ref_count == 1 && p1->is_wide_char == p2->is_wide_char$/    if (!airlock_is_sealed(p1) \&\& p1->header.ref_count == 1 \&\& p1->is_wide_char == p2->is_wide_char \/* edit *\//
/^static void gc_decref_child(/,/^}/ s/^    assert(p->ref_count > 0);/    if (airlock_is_sealed(p)) return; \/* edit *\/ assert(p->ref_count > 0);/
/^static void gc_scan_incref_child(/,/^}/ s/^    p->ref_count++;/    if (airlock_is_sealed(p)) return; \/* edit *\/ p->ref_count++;/
/^static void gc_scan_incref_child2(/,/^}/ s/^    p->ref_count++;/    if (airlock_is_sealed(p)) return; \/* edit *\/ p->ref_count++;/
/^static JSShape \*js_dup_shape(/,/^}/ s/^    sh->header.ref_count++;/    if (!airlock_is_sealed(sh)) sh->header.ref_count++; \/* edit *\//
/^static void js_free_shape(/,/^}/ s/^    if (unlikely(--sh->header.ref_count <= 0)) {/    if (!airlock_is_sealed(sh) \&\& unlikely(--sh->header.ref_count <= 0)) { \/* edit *\//
s/^        } else if (sh->header.ref_count != 1) {/        } else if (airlock_is_sealed(sh) || sh->header.ref_count != 1) { \/* edit *\//
s/^        if (sh->header.ref_count != 1) {/        if (airlock_is_sealed(sh) || sh->header.ref_count != 1) { \/* edit *\//
