
/* Lets the JSON writer read objects and strings without copying them. `quickjs-cc.sh` appends this file to quickjs.c,
   because it needs QuickJS's private structures. */

/* The bytes of a string with one byte per character; NULL for any other value. */
const uint8_t *airlock_bytes_of(JSValueConst value, size_t *length)
{
    JSString *string;
    if (JS_VALUE_GET_TAG(value) != JS_TAG_STRING)
        return NULL;
    string = JS_VALUE_GET_STRING(value);
    if (string->is_wide_char)
        return NULL;
    *length = string->len;
    return str8(string);
}

/* The same for a property name. */
const uint8_t *airlock_bytes_of_atom(JSContext *ctx, JSAtom atom, size_t *length)
{
    if (__JS_AtomIsTaggedInt(atom))
        return NULL;
    return airlock_bytes_of(JS_MKPTR(JS_TAG_STRING, ctx->rt->atom_array[atom]), length);
}

/* Whether `airlock_next_property` returns the properties of an object in the order of `Object.keys`: the object is not
   exotic, no name is a number (those come first), and no script can run and change the object while it is written,
   neither a getter nor the `toJSON` of a member. */
bool airlock_is_plain(JSValueConst value)
{
    JSObject *p = JS_VALUE_GET_OBJ(value);
    JSShapeProperty *prs = get_shape_prop(p->shape);
    int i;
    if (p->is_exotic || p->class_id != JS_CLASS_OBJECT)
        return false;
    for (i = 0; i < p->shape->prop_count; i++, prs++) {
        if (__JS_AtomIsTaggedInt(prs->atom) || (prs->flags & JS_PROP_TMASK))
            return false;
        switch (JS_VALUE_GET_NORM_TAG(p->prop[i].u.value)) {
        case JS_TAG_OBJECT:
        case JS_TAG_BIG_INT:
        case JS_TAG_SHORT_BIG_INT:
            return false;
        }
    }
    return true;
}

/* Finds the first enumerable property of a plain object with a string name at index `from` or later. Returns the index
   to continue with, 0 if there is none. */
uint32_t airlock_next_property(JSContext *ctx, JSValueConst value, uint32_t from, JSAtom *atom, JSValue *member)
{
    JSObject *p = JS_VALUE_GET_OBJ(value);
    JSShape *sh = p->shape;
    for (; from < (uint32_t)sh->prop_count; from++) {
        JSShapeProperty *prs = &get_shape_prop(sh)[from];
        if (prs->atom == JS_ATOM_NULL || !(prs->flags & JS_PROP_ENUMERABLE) ||
            JS_AtomGetKind(ctx, prs->atom) != JS_ATOM_KIND_STRING)
            continue;
        *atom = prs->atom;
        *member = js_dup(p->prop[from].u.value);
        return from + 1;
    }
    return 0;
}
