/* Stands in for libcurl.so.4 behind the HDF5 library of a wheel.
 *
 * Debian's HDF5 has a driver that reads files from S3 (H5FDros3) and is linked with libcurl for it, which would bring thirty
 * libraries along, some of them under the LGPL. Cohort never selects that driver. These are the eight functions that it calls:
 * each says that it failed, by the values that curl.h documents. */
#include <stddef.h>

enum { kFailedInit = 2 }; /* CURLE_FAILED_INIT */

int curl_global_init(long flags) { (void)flags; return kFailedInit; }
void curl_global_cleanup(void) {}
void *curl_easy_init(void) { return NULL; }
int curl_easy_setopt(void *handle, int option, ...) { (void)handle; (void)option; return kFailedInit; }
int curl_easy_perform(void *handle) { (void)handle; return kFailedInit; }
void curl_easy_cleanup(void *handle) { (void)handle; }
void *curl_slist_append(void *list, const char *text) { (void)list; (void)text; return NULL; }
void curl_slist_free_all(void *list) { (void)list; }
